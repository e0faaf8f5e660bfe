// Checks JSON schemas before they become grammars. llama.cpp's converter ignores keywords that it
// does not know and patterns that it cannot express, overflows on large bounds, and makes a rule of
// every repetition. An answer's schema must be enforced in full, so these are refused. Schemas of
// tools mostly come from libraries: there they are left out instead.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace knap {

inline constexpr std::size_t kMaxSchemaBytes = 64 * 1024;
inline constexpr int kMaxSchemaDepth = 32;
// libllama's limit on the rules that one repetition makes. A string's character is one rule; an
// array's item with its comma may be three.
inline constexpr int kMaxStringLength = 2000;
inline constexpr int kMaxItems = 500;
inline constexpr int kMaxRepetitions = 20'000;      // of a schema, all bounds added up
inline constexpr std::size_t kMaxKeptSchemas = 64;  // whose grammars are remembered

enum class SchemaUse { answer, tool };

// The schema that the grammar is made of, as JSON text. `where` starts the messages of errors:
// "`.json_schema`: #/properties/name: `maxLength`: expected at most 2000, found 5000".
std::string checked_schema(std::string_view schema, std::string_view where, SchemaUse use);

// The grammar of a checked schema.
std::string schema_grammar(const std::string& checked);

}  // namespace knap
