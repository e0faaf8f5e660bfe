#include "serve/answer/logprobs_json.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace knap::logprobs_json_test {
namespace {

// "aé😀b" in tokens that do not end where its characters do.
const std::vector<std::string> kPieces{"a\xc3", "\xa9", "\xf0\x9f", "\x98", "\x80", "b", ""};

std::string piece_of(Token token) {
    return kPieces.at(static_cast<std::size_t>(token));
}

std::vector<AnswerToken> tokens(Token first, Token end) {
    std::vector<AnswerToken> list;
    for (Token token = first; token < end; ++token) {
        list.push_back({.token = token, .logprob = -1});
    }
    return list;
}

TEST(TextLogprobs, OffsetsAreThoseOfCharacters) {
    std::size_t n_characters = 0;
    const Json all = text_logprobs(tokens(0, 7), piece_of, n_characters);
    EXPECT_EQ(all["text_offset"], Json::array({0, 1, 2, 2, 2, 3, 4}));
    EXPECT_EQ(n_characters, 4u);
}

TEST(TextLogprobs, OffsetsGoOnInTheNextChunk) {
    std::size_t n_characters = 0;
    text_logprobs(tokens(0, 3), piece_of, n_characters);
    const Json rest = text_logprobs(tokens(3, 6), piece_of, n_characters);
    EXPECT_EQ(rest["text_offset"], Json::array({2, 2, 3}));
}

TEST(TextLogprobs, PartsOfCharactersHaveNamesOfTheirOwn) {
    std::size_t n_characters = 0;
    const std::vector<AnswerToken> one{{.token = 3, .logprob = -1, .top = {{3, -1}, {4, -2}}}};
    const Json logprobs = Json::parse(to_text(text_logprobs(one, piece_of, n_characters)));
    EXPECT_EQ(logprobs["tokens"], Json::array({"bytes:\\x98"}));
    EXPECT_EQ(logprobs["top_logprobs"][0], (Json{{"bytes:\\x98", -1.0}, {"bytes:\\x80", -2.0}}));
    EXPECT_EQ(logprobs["text_offset"], Json::array({0})) << "no character began before";
}

TEST(ChatLogprobs, HaveBytesAndAFiniteNumber) {
    const std::vector<AnswerToken> one{{.token = 2, .logprob = -INFINITY}};
    const Json entry = chat_logprobs(one, piece_of)[0];
    EXPECT_EQ(entry["bytes"], Json::array({0xf0, 0x9f}));
    EXPECT_EQ(entry["logprob"], -9999.0);
    EXPECT_EQ(entry["id"], 2);
}

}  // namespace
}  // namespace knap::logprobs_json_test
