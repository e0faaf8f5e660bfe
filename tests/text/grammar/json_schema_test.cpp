#include "text/grammar/json_schema.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "text/chat_models.h"
#include "text/grammar/grammar_parser.h"
#include "text/utf8.h"

namespace knap::json_schema_test {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& schema, SchemaUse use = SchemaUse::answer) {
    try {
        SchemaBudget budget;
        checked_schema(schema, "here", use, budget);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

bool allows(const std::string& schema, const std::string& text) {
    static const auto tokenizer = test::load_vocabulary(test::bpe_vocabulary());
    const std::string grammar = parse_grammar(json_schema_to_gbnf(schema))->text();
    return test::allows(*tokenizer, {.text = grammar}, text);
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

TEST(JsonSchema, BoundsAreExactHoweverLarge) {
    const auto text = [](int n) {
        return "\"" + std::string(static_cast<std::size_t>(n), 'a') + "\"";
    };
    const std::string string = R"({"type":"string","minLength":2500,"maxLength":5000})";
    EXPECT_FALSE(allows(string, text(2499)));
    EXPECT_TRUE(allows(string, text(2500)));
    EXPECT_TRUE(allows(string, text(5000)));
    EXPECT_FALSE(allows(string, text(5001)));
    EXPECT_TRUE(allows(R"({"type":"string","maxLength":1000000000})", text(9)));
    EXPECT_TRUE(allows(R"({"type":"string","maxLength":99999999999999999999})", text(9)));
    EXPECT_FALSE(allows(R"({"type":"string","maxLength":3.0})", text(4)));
    const std::string pattern = R"({"type":"string","pattern":"^(aa){0,1500}$"})";
    EXPECT_TRUE(allows(pattern, text(3000)));
    EXPECT_FALSE(allows(pattern, text(3001)));
    EXPECT_FALSE(allows(pattern, text(3002)));
}

TEST(JsonSchema, ArraysMayHaveManyItems) {
    const auto list = [](int n) {
        std::string items = R"({"a":""})";
        for (int i = 1; i < n; ++i) {
            items += R"(,{"a":""})";
        }
        return "[" + items + "]";
    };
    const std::string schema =
        R"({"type":"array","items":{"type":"object","properties":{"a":{"type":"string",)"
        R"("maxLength":3000}},"required":["a"]},"minItems":1,"maxItems":700})";
    EXPECT_TRUE(allows(schema, list(1)));
    EXPECT_TRUE(allows(schema, list(700)));
    EXPECT_FALSE(allows(schema, list(701)));
}

TEST(JsonSchema, RefusalsNamePathAndKeyword) {
    const auto in_property = [](const std::string& schema) {
        return R"({"type":"object","properties":{"x":{"items":)" + schema + "}}}";
    };
    for (const auto& [schema, keyword, words] : {
             std::array<std::string, 3>{R"({"minLength":-1})", "minLength", "a count"},
             {R"({"maxLength":"3"})", "maxLength", "a count"},
             {R"({"maxItems":1.5})", "maxItems", "a count"},
             {R"({"minItems":99999999999999999999})", "minItems", "at most 1000000000"},
             {R"({"minLength":3,"maxLength":2})", "maxLength", "at least `minLength`, which is 3"},
             {R"({"minItems":3,"maxItems":2})", "maxItems", "at least `minItems`"},
             {R"({"type":"integer","minimum":9,"maximum":2})", "maximum", "at least `minimum`"},
             {R"({"pattern":"^a*$","maxLength":2})", "maxLength", "beside `pattern`"},
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
}

// The converter would take hours for these, or exhaust its stack.
TEST(JsonSchema, SchemasThatWouldNotCompileAreRefused) {
    EXPECT_THAT(error_of(R"({"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"properties":)"
                         R"({"p":{"allOf":[{"$ref":"#/$defs/a"}]}}}}})"),
                HasSubstr("256 deep by way of references"));
    EXPECT_THAT(error_of(R"({"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"$ref":"#/$defs/b"},)"
                         R"("b":{"$ref":"#/$defs/a"}}})"),
                HasSubstr("256 deep by way of references"));
    std::string doubled = R"({"allOf":[{"$ref":"#/$defs/a0"}],"$defs":{)";
    for (int i = 0; i < 40; ++i) {
        const std::string next = concat(R"({"$ref":"#/$defs/a)", i + 1, "\"}");
        doubled += concat("\"a", i, R"(":{"properties":{"p":{"allOf":[)", next, ",", next, "]}}},");
    }
    std::string typed = "{}";
    for (int i = 0; i < 30; ++i) {
        typed = R"({"type":["object","object"],"properties":{"a":)" + typed + "}}";
    }
    std::string optional = R"({"properties":{"p":{})";
    std::string required;
    for (int i = 0; i < 1000; ++i) {
        optional += concat(",\"p", i, "\":{}");
        required += concat(i == 0 ? "" : ",", "\"p", i, "\"");
    }
    for (const std::string& schema :
         {doubled + R"("a40":{"properties":{"x":{}}}}})", typed, optional + "}}"}) {
        EXPECT_THAT(error_of(schema), HasSubstr("here: expected a schema that compiles within"))
            << schema.substr(0, 60);
    }
    EXPECT_EQ(error_of(optional + R"(},"required":[)" + required + "]}"), "no error");
    // Names of rules keep letters and digits only, and then differ by numbers.
    std::string alike;
    std::string names;
    for (int i = 0; i < 1600; ++i) {
        const std::string name = "\"" + utf8_of(static_cast<char32_t>(0x4e00 + i)) + "\"";
        alike += concat(i == 0 ? "" : ",", name, R"(:{"const":)", i, "}");
        names += (i == 0 ? "" : ",") + name;
    }
    EXPECT_THAT(error_of(R"({"properties":{)" + alike + R"(},"required":[)" + names + "]}"),
                HasSubstr("compiles within a second"));
}

TEST(JsonSchema, TheSchemasOfARequestShareTheirTime) {
    std::string optional = R"({"properties":{"p":{})";
    for (int i = 0; i < 300; ++i) {
        optional += concat(",\"p", i, "\":{}");
    }
    SchemaBudget budget;
    checked_schema(optional + "}}", "here", SchemaUse::tool, budget);
    EXPECT_GT(budget.us_left, 50'000);
    EXPECT_LT(budget.us_left, 190'000);
    budget.us_left = 20'000;
    EXPECT_THROW(checked_schema(optional + "}}", "here", SchemaUse::tool, budget), Error);
}

TEST(JsonSchema, ReferencesMayLeadAnywhereInTheSchema) {
    EXPECT_TRUE(allows(R"({"$ref":"#/other/1","other":[{},{"type":"null"}]})", "null"));
    EXPECT_THAT(error_of(R"({"$ref":"#/other/1","other":[{},{"not":{}}]})"),
                HasSubstr("#/other/1: `not`: is not supported"));
    EXPECT_THAT(error_of(R"({"prefixItems":[{"$ref":"#/$defs/a_b"},{"$ref":"#/$defs/a.b"}],)"
                         R"("$defs":{"a_b":{"type":"null"},"a.b":{"type":"string"}}})"),
                HasSubstr("names that differ in letters and digits"));
}

TEST(JsonSchema, ToolsLoseWhatAGrammarCannotSay) {
    const auto relaxed = [](const std::string& schema) {
        SchemaBudget budget;
        return checked_schema(schema, "here", SchemaUse::tool, budget);
    };
    EXPECT_EQ(relaxed(R"({"type":"string","minLength":9999999999,"maxLength":2})"),
              R"({"type":"string","maxLength":2})");
    EXPECT_EQ(relaxed(R"({"type":"number","minimum":0.5})"), R"({"type":"number"})");
    EXPECT_EQ(relaxed(R"({"type":"string","pattern":"^\\bword$"})"), R"({"type":"string"})");
    EXPECT_EQ(relaxed(R"({"properties":{"z":true,"a":{"uniqueItems":true}}})"),
              R"({"properties":{"z":{},"a":{}}})");
    EXPECT_THAT(error_of(R"({"$ref":"x"})", SchemaUse::tool), HasSubstr("`$ref`"));
}

}  // namespace
}  // namespace knap::json_schema_test
