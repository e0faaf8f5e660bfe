#include "text/grammar/json_schema.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat_models.h"

namespace knap::json_schema_test {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& schema, SchemaUse use = SchemaUse::answer) {
    try {
        checked_schema(schema, "here", use);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

bool allows(const std::string& schema, const std::string& text) {
    static const auto tokenizer = test::load_vocabulary(test::bpe_vocabulary());
    return test::allows(*tokenizer, {.text = json_schema_to_gbnf(schema)}, text);
}

TEST(JsonSchema, BecomesAGrammar) {
    const std::string schema =
        R"({"type":"object","properties":{"b":{"type":"integer","minimum":1,"maximum":20},)"
        R"("a":{"enum":["x","y"]}},"required":["b","a"],"additionalProperties":false})";
    EXPECT_TRUE(allows(schema, R"({"b": 7, "a": "x"})"));
    EXPECT_FALSE(allows(schema, R"({"a": "x", "b": 7})")) << "properties keep their order";
    EXPECT_FALSE(allows(schema, R"({"b": 21, "a": "x"})"));
    EXPECT_FALSE(allows(schema, R"({"b": 7, "a": "z"})"));
    EXPECT_FALSE(allows(schema, R"({"b": 7})"));
    EXPECT_TRUE(allows(R"({"type":"string","pattern":"^a+b$"})", R"("aab")"));
    EXPECT_FALSE(allows(R"({"type":"string","pattern":"^a+b$"})", R"("ba")"));
    EXPECT_TRUE(allows(R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"null"}}})", "null"));
}

TEST(JsonSchema, PatternsMatchOnlyWhatJsonWritesAsItIs) {
    const auto matches = [](const std::string& pattern, const std::string& text) {
        return allows(R"({"type":"string","pattern":")" + pattern + "\"}", "\"" + text + "\"");
    };
    EXPECT_TRUE(matches(R"(^\\d{3}-\\w+$)", "123-a_9"));
    EXPECT_FALSE(matches(R"(^\\d{3}-\\w+$)", "12-a"));
    EXPECT_TRUE(matches(R"(^[\\d.\\-\\]]+\\/\\.$)", "1.-]/."));
    EXPECT_TRUE(matches(R"(^(?:a|b)\\s\\D$)", "b x"));
    EXPECT_FALSE(matches(R"(^(?:a|b)\\s\\D$)", "b 1"));
    for (const char* pattern : {"^.*$", "^[^a]*$", R"(^\\D*$)"}) {
        EXPECT_TRUE(matches(pattern, "xyz é")) << pattern;
        EXPECT_FALSE(matches(pattern, "\"")) << pattern;
        EXPECT_FALSE(matches(pattern, "\\")) << pattern;
        EXPECT_FALSE(matches(pattern, "\n")) << pattern;
    }
}

TEST(JsonSchema, TheLargestBoundsCompile) {
    EXPECT_TRUE(allows(R"({"type":"string","maxLength":2000})", "\"a\""));
    EXPECT_TRUE(allows(R"({"type":"array","items":{"type":"object","properties":{"a":{"type":)"
                       R"("string"}},"required":["a"]},"minItems":1,"maxItems":500})",
                       R"([{"a":"b"}])"));
}

TEST(JsonSchema, RefusalsNamePathAndKeyword) {
    const auto in_property = [](const std::string& schema) {
        return R"({"type":"object","properties":{"x":{"items":)" + schema + "}}}";
    };
    for (const auto& [schema, keyword, words] : {
             std::array<std::string, 3>{R"({"maxLength":2001})", "maxLength", "at most 2000"},
             {R"({"minLength":-1})", "minLength", "a count"},
             {R"({"maxItems":501})", "maxItems", "at most 500"},
             {R"({"minItems":99999999999999999999})", "minItems", "a count"},
             {R"({"type":"integer","minimum":1e300})", "minimum", "2^53"},
             {R"({"type":"number","maximum":3})", "maximum", "integers only"},
             {R"({"pattern":"a"})", "pattern", "^...$"},
             {R"({"pattern":"^(?=a)b$"})", "pattern", "^...$"},
             {R"({"pattern":"^a$b$"})", "pattern", "^...$"},
             {R"({"pattern":"^(a$"})", "pattern", "^...$"},
             {R"({"pattern":"^\"$"})", "pattern", "^...$"},
             {R"({"pattern":"^(a)\\\\1$"})", "pattern", "^...$"},
             {R"({"pattern":"^[a$"})", "pattern", "^...$"},
             {R"({"$ref":"other.json"})", "$ref", "'other.json'"},
             {R"({"not":{}})", "not", "not supported"},
             {R"({"uniqueItems":true})", "uniqueItems", "not supported"},
             {R"({"properties":7})", "properties", "an object"},
         }) {
        EXPECT_THAT(error_of(in_property(schema)),
                    testing::AllOf(testing::StartsWith("here: #/properties/x/items: `" + keyword),
                                   HasSubstr(words)))
            << schema;
    }
    EXPECT_THAT(error_of(R"({"properties":{"x":7}})"),
                HasSubstr("#/properties/x: expected an object"));
    EXPECT_THAT(error_of(R"({"$ref":"#/$defs/none"})"), HasSubstr("#/$defs/none"));
    EXPECT_THAT(error_of(R"({"type":"strange"})"), HasSubstr("strange"));
    EXPECT_THAT(error_of("{"), HasSubstr("here: expected JSON"));
    EXPECT_THAT(error_of("[]"), HasSubstr("expected an object, found array"));
}

TEST(JsonSchema, SizesAreLimited) {
    const auto nested = [](int n) {
        std::string schema = "{}";
        for (int i = 1; i < n; ++i) {
            schema = R"({"items":)" + schema + "}";
        }
        return schema;
    };
    EXPECT_EQ(error_of(nested(kMaxSchemaDepth)), "no error");
    EXPECT_THAT(error_of(nested(kMaxSchemaDepth + 1)), HasSubstr("32 levels"));
    EXPECT_THAT(error_of(std::string(30'000, '[')), HasSubstr("32 levels"));
    const std::string description(kMaxSchemaBytes, 'x');
    EXPECT_THAT(error_of(R"({"description":")" + description + "\"}"), HasSubstr("65536 bytes"));
    std::string many = R"({"properties":{"p":{})";
    for (int i = 0; i < 11; ++i) {
        many += ",\"p" + std::to_string(i) + R"(":{"type":"string","maxLength":2000})";
    }
    EXPECT_THAT(error_of(many + "}}"), HasSubstr("add up to at most 20000"));
    EXPECT_THAT(error_of(R"({"pattern":"^a{30000}$"})"), HasSubstr("add up to at most 20000"));
}

TEST(JsonSchema, ToolsLoseWhatAGrammarCannotSay) {
    const auto relaxed = [](const std::string& schema) {
        return checked_schema(schema, "here", SchemaUse::tool);
    };
    EXPECT_EQ(relaxed(R"({"type":"string","maxLength":99999,"minLength":2})"),
              R"({"type":"string","minLength":2})");
    EXPECT_EQ(relaxed(R"({"type":"number","minimum":0.5})"), R"({"type":"number"})");
    EXPECT_EQ(relaxed(R"({"type":"string","pattern":"^\\bword$"})"), R"({"type":"string"})");
    EXPECT_EQ(relaxed(R"({"properties":{"z":true,"a":{"uniqueItems":true}}})"),
              R"({"properties":{"z":{},"a":{}}})");
    EXPECT_THAT(error_of(R"({"$ref":"x"})", SchemaUse::tool), HasSubstr("`$ref`"));
}

}  // namespace
}  // namespace knap::json_schema_test
