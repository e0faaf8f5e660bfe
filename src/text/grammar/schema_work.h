// How long llama.cpp's converter takes for a JSON schema, told before it begins: schemas of a few
// lines keep it busy for hours or exhaust its stack, and it cannot be interrupted.
#pragma once

#include <string_view>

#include "nlohmann/json.hpp"

namespace knap {

// Where a reference (#/...) leads to; null: nowhere.
const nlohmann::ordered_json* schema_at(const nlohmann::ordered_json& root, std::string_view ref);

// What the schemas of one request may take together. The grammars are made up to four times, so
// that a second is enough for all.
struct SchemaBudget {
    double us_left = 200'000;
};

// Takes what `schema` costs, as measured on one core of a server of 2023. Throws knap::Error, which
// begins with `where`, when it is more than there is, and when references go too deep.
void spend_on_schema(const nlohmann::ordered_json& schema,
                     std::string_view where,
                     SchemaBudget& budget);

}  // namespace knap
