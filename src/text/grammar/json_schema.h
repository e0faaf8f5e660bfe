// Checks JSON schemas before they become grammars. llama.cpp's converter ignores keywords that it
// does not know and patterns that it cannot express, overflows on large bounds, and may take any
// time (schema_work.h). An answer's schema must be enforced in full, so these are refused. Schemas
// of tools mostly come from libraries: there they are left out instead.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/grammar/schema_work.h"

namespace knap {

inline constexpr std::size_t kMaxSchemaBytes = 64 * 1024;
inline constexpr int kMaxSchemaDepth = 32;
inline constexpr int kMaxCount = 1'000'000'000;     // no answer is that long, or has as many items
inline constexpr std::size_t kMaxKeptSchemas = 64;  // whose grammars are remembered

enum class SchemaUse { answer, tool };

// The schema that the grammar is made of, as JSON text. `where` starts the messages of errors:
// "`.json_schema`: #/properties/name: `maxLength`: expected a count, found -1". The schemas of a
// request share a budget.
std::string checked_schema(std::string_view schema,
                           std::string_view where,
                           SchemaUse use,
                           SchemaBudget& budget);

// The grammar of a checked schema.
std::string schema_grammar(const std::string& checked);

}  // namespace knap
