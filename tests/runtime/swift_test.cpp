// SWIFT on a model: the text is plain decoding's while plans are tried in every round.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "support/baseline.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::runtime_swift_test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Candidates from the first rounds on, every second one the optimiser's; exits at low confidences,
// which are all that random weights have.
SpeculationOptions swift(const StrategySettings& more = {}) {
    SpeculationOptions options{.strategy = "swift",
                               .draft_max = 9,
                               .settings = {{"window", "4"},
                                            {"bayes-interval", "2"},
                                            {"ratio", "0.3"},
                                            {"exit-confidence", "0.05"}}};
    options.settings.insert(more.begin(), more.end());
    return options;
}

class SwiftSession : public ::testing::Test {
  protected:
    explicit SwiftSession(const char* shape = "tiny-llama", const char* type = "Q8_0")
        : engine_({.model_path = tiny_model(shape, type), .n_ctx = 512, .n_threads = 1}),
          session_(engine_) {}

    Result generate(const SpeculationOptions& speculation) {
        return session_.generate(
            prompt_, {.n_predict = 120, .speculation = speculation, .ignore_eos = true});
    }

    Result plain() { return plain_text(session_, prompt_, {.n_predict = 120, .ignore_eos = true}); }

    Engine engine_;
    Session session_;
    const std::vector<Token> prompt_ = random_tokens(30, 256, /*seed=*/1);
};

TEST_F(SwiftSession, WritesWhatPlainDecodingWrites) {
    const Result plain = this->plain();
    for (const char* more : {"", "tree=paper", "tree=off", "opt-interval=3"}) {
        const Result result = generate(swift(parse_settings(more)));
        EXPECT_EQ(result.tokens, plain.tokens) << more;
        EXPECT_TRUE(result.speculation.row_invariant);
        EXPECT_GE(result.decisions.size(), 2u) << more;
        const bool is_chain = result.speculation.n_tree_nodes == result.speculation.n_drafted;
        EXPECT_EQ(is_chain, std::string(more) == "tree=off") << more;
    }
}

TEST_F(SwiftSession, GoesOnWithItsPlanInTheNextRequest) {
    const Result first = generate(swift());
    session_.reset();
    const Result second = generate(swift());
    EXPECT_EQ(second.tokens, first.tokens);
    EXPECT_THAT(first.decisions.front().reason, StartsWith("no search yet"));
    EXPECT_THAT(second.decisions.front().reason, HasSubstr("plans so far"));
    EXPECT_EQ(second.decisions.front().plan, first.decisions.back().plan);
}

TEST_F(SwiftSession, ThePlanIsFrozenAfterTheSearch) {
    generate(swift({{"iterations", "3"}}));
    const Result later = generate(swift({{"iterations", "3"}}));
    EXPECT_THAT(later.decisions, SizeIs(1));
    EXPECT_THAT(later.decisions.front().reason, StartsWith("the best of 4 plans so far"));
}

// K-quants are verified a few rows at a time: depth goes before siblings.
class SwiftSessionOfKQuants : public SwiftSession {
  protected:
    SwiftSessionOfKQuants() : SwiftSession("small-llama", "Q4_K") {}
};

TEST_F(SwiftSessionOfKQuants, WritesWhatPlainDecodingWrites) {
    const Result plain = this->plain();
    session_.reset();  // rows of a prompt depend on how many are computed at once
    const Result result = generate(swift());
    EXPECT_EQ(result.tokens, plain.tokens);
    EXPECT_TRUE(result.speculation.row_invariant);
    EXPECT_GE(result.decisions.size(), 2u);
}

}  // namespace
}  // namespace knap::test::runtime_swift_test
