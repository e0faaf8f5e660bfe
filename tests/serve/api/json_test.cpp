#include "serve/api/json.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api/error.h"

namespace knap::request_json_test {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
    try {
        parse_request_json(text);
    } catch (const RequestError& error) {
        EXPECT_EQ(error.error().status, 400);
        return error.what();
    }
    return "";
}

std::string nested(int depth) {
    const auto n = static_cast<std::size_t>(depth);
    return std::string(n, '[') + std::string(n, ']');
}

std::string object_of(int n_members) {
    std::string text = "{";
    for (int i = 0; i < n_members; ++i) {
        text += concat(i == 0 ? "" : ",", "\"k", i, "\":", i);
    }
    return text + "}";
}

TEST(RequestJson, KeepsTheOrderOfMembers) {
    EXPECT_EQ(to_text(parse_request_json(R"({"b":1,"a":{"z":null,"y":[true]}})")),
              R"({"b":1,"a":{"z":null,"y":[true]}})");
}

TEST(RequestJson, RefusesWhatIsNotJson) {
    for (const char* text :
         {"", "{", "{} {}", "{}x", "[1,]", "NaN", "{\"a\":NaN}", "Infinity", "{'a':1}", "[1e400]",
          "{\"a\":1,}", "// no\n{}", "\"\xff\"", "{\"a\":\"\xc3\"}"}) {
        EXPECT_THAT(refusal(text), HasSubstr("expected valid JSON")) << text;
    }
}

TEST(RequestJson, RefusesARepeatedKeyAtAnyDepth) {
    EXPECT_THAT(refusal(R"({"a":1,"b":2,"a":3})"), HasSubstr("'a' twice"));
    EXPECT_THAT(refusal(R"([{"x":{"c":1,"c":1}}])"), HasSubstr("'c' twice"));
    EXPECT_EQ(refusal(R"({"a":{"a":1},"b":{"a":1}})"), "");
}

TEST(RequestJson, LimitsDepth) {
    EXPECT_EQ(refusal(nested(64)), "");
    EXPECT_THAT(refusal(nested(65)), HasSubstr("64 levels"));
    EXPECT_THAT(refusal(nested(1'000'000)), HasSubstr("64 levels"));
}

TEST(RequestJson, LimitsMembers) {
    EXPECT_EQ(refusal(object_of(4096)), "");
    EXPECT_THAT(refusal(object_of(4097)), HasSubstr("4096 members"));
    std::string many = "[" + object_of(4096);
    for (int i = 0; i < 16; ++i) {
        many += "," + object_of(4096);
    }
    EXPECT_THAT(refusal(many + "]"), HasSubstr("65536 in all"));
}

TEST(RequestJson, AnswersAreUtf8WhateverTheirTextsAre) {
    EXPECT_EQ(to_text(Json{{"text", "a\xff\nb"}}), "{\"text\":\"a\xEF\xBF\xBD\\nb\"}");
}

}  // namespace
}  // namespace knap::request_json_test
