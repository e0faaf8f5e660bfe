#include "support/baseline.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace knap::test {
namespace {

// The prompt's pass yields the first token. Where the model ends the text, one more round yields
// the end token, which is not part of the text. A cancelled round emits nothing.
int expected_rounds(const Result& result) {
    const int n_emitted = result.n_generated + (result.stop == StopReason::eos ? 1 : 0);
    return std::max(0, n_emitted - 1);
}

}  // namespace

void expect_plain_decoding(const Result& result) {
    EXPECT_EQ(result.strategy, "autoregressive") << "the baseline must be plain decoding";
    const SpeculationStatistics& statistics = result.speculation;
    EXPECT_EQ(statistics.n_drafted, 0) << "the baseline drafted";
    EXPECT_EQ(statistics.n_tree_nodes, 0) << "the baseline drafted";
    EXPECT_EQ(statistics.n_accepted, 0) << "the baseline drafted";
    EXPECT_EQ(statistics.rounds, expected_rounds(result)) << "one round per token after the first";
    EXPECT_TRUE(result.decisions.empty()) << "plain decoding makes no decisions";
    EXPECT_FALSE(statistics.is_projection);
}

Result plain_text(Session& session,
                  std::span<const Token> prompt,
                  GenerateOptions options,
                  const Observer& observer) {
    options.speculation = plain_decoding();
    Result result = session.generate(prompt, options, observer);
    expect_plain_decoding(result);
    return result;
}

}  // namespace knap::test
