#include "knap/chat.h"

#include "fuzz/material.h"
#include "fuzz/targets.h"
#include "text/grammar/json_schema.h"

namespace knap::fuzz::json_schema_target_parts {
namespace {

void run(std::string_view input) {
    is_accepted([&] { json_schema_to_gbnf(input); });
    is_accepted([&] {
        SchemaBudget budget;
        checked_schema(input, "`.tools`", SchemaUse::tool, budget);
    });
}

std::vector<std::string> seeds() {
    std::vector<std::string> all = with_any(
        string_literals("tests/text/grammar/json_schema_test.cpp"), {"{", "[", "true", "null"});
    for (const std::string& text : with_any(string_literals("tests/serve/api"), {"\"type\""})) {
        all.push_back(text);
    }
    for (const std::string& text : deep_and_long()) {
        all.push_back(text);
        all.push_back("{\"type\":\"string\",\"pattern\":\"^" + text + "$\"}");
        all.push_back("{\"anyOf\":" + text);
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::json_schema_target_parts

knap::fuzz::Target knap::fuzz::json_schema_target() {
    using namespace json_schema_target_parts;
    return {.name = "json_schema",
            .run = run,
            .seeds = seeds,
            .max_bytes = 2048,
            .word_sources = {"src/text/grammar/json_schema.cpp", "src/text/grammar/schema_work.cpp",
                             "src/text/grammar/schema_pattern.cpp"}};
}
