#include "tools/measure/text_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::text_comparison_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const SamplingOptions kGreedyChoice{};
const SamplingOptions kCut{.temperature = 0.7f, .top_k = 50};
const SamplingOptions kUncut{.temperature = 0.7f, .top_k = 0, .top_p = 1, .min_p = 0};

Result answer(std::vector<Token> tokens) {
    Result result;
    result.tokens = std::move(tokens);
    result.n_prompt = 10;
    return result;
}

std::optional<BenchDifference> compare(const Result& drafted,
                                       const SamplingOptions& sampling,
                                       const SpeculationOptions& how = {}) {
    return compare_texts(answer({1, 2, 3}), drafted, how, sampling, "a prompt");
}

TEST(CompareTexts, EqualTextsHaveNoDifference) {
    EXPECT_FALSE(compare(answer({1, 2, 3}), kGreedyChoice));
}

TEST(CompareTexts, ADifferenceIsAnError) {
    for (const SamplingOptions& sampling : {kGreedyChoice, kCut, kUncut}) {
        EXPECT_THAT(
            [&] {
                compare(answer({1, 5, 3}), sampling);
            },
            ThrowsMessage<Error>(
                HasSubstr("a prompt: expected the text of plain decoding, found another token at "
                          "position 11, which is not a near tie")));
    }
    EXPECT_THROW(compare(answer({1, 2}), kGreedyChoice), Error);
}

TEST(CompareTexts, ANearTieIsReported) {
    Result drafted = answer({1, 5, 3});
    drafted.speculation.row_invariant = false;
    drafted.speculation.near_ties = {{.position = 11, .gap = 0.25f}};
    EXPECT_EQ(compare(drafted, kGreedyChoice), (BenchDifference{.position = 11, .gap = 0.25}));
    drafted.speculation.near_ties[0].position = 12;
    EXPECT_THROW(compare(drafted, kGreedyChoice), Error) << "a near tie elsewhere is no excuse";
}

TEST(CompareTexts, TheEdgeOfACutIsReportedWhenRowsRoundDifferently) {
    Result drafted = answer({1, 5, 3});
    drafted.speculation.row_invariant = false;
    EXPECT_EQ(compare(drafted, kCut), (BenchDifference{.position = 11}));
    EXPECT_THROW(compare(drafted, kUncut), Error);
}

TEST(CompareTexts, TextsThatMayDifferAreNotCompared) {
    const SpeculationOptions ratio{.acceptance = AcceptanceRule::ratio};
    EXPECT_FALSE(compare(answer({9}), kCut, ratio));
    EXPECT_THROW(compare(answer({9}), kGreedyChoice, ratio), Error)
        << "greedy decoding has only one rule";
    EXPECT_FALSE(compare(answer({9}), kGreedyChoice, {.assume_acceptance = 0.5}));
}

}  // namespace
}  // namespace knap::text_comparison_test
