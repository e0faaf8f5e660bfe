// The published method on a model: the text is plain decoding's, and searches happen when and on
// what they should.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "support/baseline.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::runtime_knapspec_paper_test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Random weights hardly agree with themselves when modules are missing: no pruning, short
// intervals, so that plans are found and searched for often.
const std::string kOften = "tau=-1,interval=7";

class PaperSession : public ::testing::Test {
  protected:
    explicit PaperSession(const char* shape = "tiny-llama", const char* type = "Q8_0")
        : engine_({.model_path = tiny_model(shape, type), .n_ctx = 512, .n_threads = 1}),
          session_(engine_) {}

    Result generate(const SpeculationOptions& speculation,
                    const SamplingOptions& sampling = {},
                    int n_predict = 150) {
        return session_.generate(prompt_, {.n_predict = n_predict,
                                           .sampling = sampling,
                                           .speculation = speculation,
                                           .ignore_eos = true});
    }

    Result plain(const SamplingOptions& sampling = {}) {
        return plain_text(session_, prompt_,
                          {.n_predict = 150, .sampling = sampling, .ignore_eos = true});
    }

    static SpeculationOptions paper(const std::string& options = kOften) {
        return {.strategy = "knapspec-paper", .settings = parse_settings(options)};
    }

    Engine engine_;
    Session session_;
    const std::vector<Token> prompt_ = random_tokens(30, 256, /*seed=*/1);
};

TEST_F(PaperSession, WritesWhatPlainDecodingWrites) {
    const Result plain = this->plain();
    for (const char* more :
         {"", ",variant=paper", ",start=prompt", ",exit-confidence=0,lengths=paper"}) {
        const Result result = generate(paper(kOften + more));
        EXPECT_EQ(result.tokens, plain.tokens) << more;
        EXPECT_TRUE(result.speculation.row_invariant);
        EXPECT_GT(result.speculation.n_drafted, 0);
        EXPECT_GE(result.decisions.size(), 3u) << more;
    }
}

TEST_F(PaperSession, WritesWhatPlainSamplingWrites) {
    SamplingOptions sampling{.temperature = 0.8f, .repeat_penalty = 1.2f, .seed = 3};
    const Result plain = this->plain(sampling);
    for (const AcceptanceRule rule : {AcceptanceRule::shared_noise, AcceptanceRule::equality}) {
        for (const char* more : {"", ",confidence=paper"}) {
            SpeculationOptions options = paper(kOften + more);
            options.acceptance = rule;
            EXPECT_EQ(generate(options, sampling).tokens, plain.tokens);
        }
    }
}

TEST_F(PaperSession, DraftsInEveryRoundAndDecidesAtEverySearch) {
    const Result result = generate(paper());
    EXPECT_GE(result.speculation.n_drafted, result.speculation.rounds - 1)
        << "the last round may have no room";
    ASSERT_FALSE(result.decisions.empty());
    EXPECT_THAT(result.decisions[0].reason, StartsWith("no search yet"));
    EXPECT_EQ(result.decisions[0].token, 1);
    const auto n_searches = static_cast<std::size_t>(result.speculation.rounds / 7);
    EXPECT_THAT(result.decisions, SizeIs(n_searches + 1));
    for (std::size_t i = 1; i < result.decisions.size(); ++i) {
        const Decision& decision = result.decisions[i];
        EXPECT_GT(decision.token, result.decisions[i - 1].token);
        EXPECT_THAT(decision.reason, StartsWith("best of ")) << decision.reason;
        EXPECT_THAT(decision.source, HasSubstr("skip"))
            << "the plan that skips nothing is left out";
        EXPECT_THAT(decision.source, ::testing::Not(HasSubstr("0="))) << "the first layer runs";
        EXPECT_GT(decision.predicted, 0);
        EXPECT_GT(decision.measured, 0);
    }
    EXPECT_GT(result.timings.search_ms, 0);
}

TEST_F(PaperSession, ASecondRequestStartsAnew) {
    const Result first = generate(paper());
    session_.reset();
    const Result second = generate(paper());
    EXPECT_EQ(second.tokens, first.tokens);
    ASSERT_FALSE(second.decisions.empty());
    EXPECT_THAT(second.decisions[0].reason, StartsWith("no search yet"));
}

TEST_F(PaperSession, AnAnswerOfOneTokenNeedsNoRound) {
    const Result result = generate(paper("start=prompt"), {}, /*n_predict=*/1);
    EXPECT_THAT(result.tokens, SizeIs(1));
    EXPECT_EQ(result.speculation.rounds, 0);
    EXPECT_THAT(result.decisions, ::testing::IsEmpty());
}

TEST_F(PaperSession, APromptOfOneTokenCanBeSearchedOn) {
    const std::vector<Token> prompt = {5};
    GenerateOptions options{.n_predict = 20, .ignore_eos = true};
    const Result plain = plain_text(session_, prompt, options);
    options.speculation = paper(kOften + ",start=prompt");
    EXPECT_EQ(session_.generate(prompt, options, {}).tokens, plain.tokens);
}

TEST_F(PaperSession, RowsOfLongDraftsFitTheSearch) {
    SpeculationOptions options = paper(kOften + ",exit-confidence=0");
    options.draft_max = kMaxDraft;
    const Result result = generate(options, {}, /*n_predict=*/470);
    EXPECT_THAT(result.tokens, SizeIs(470));
    EXPECT_GE(result.decisions.size(), 2u);
}

// K-quants are verified a few rows at a time; the search may have more.
class PaperSessionOfKQuants : public PaperSession {
  protected:
    PaperSessionOfKQuants() : PaperSession("small-llama", "Q4_K") {}
};

TEST_F(PaperSessionOfKQuants, WritesWhatPlainDecodingWrites) {
    const Result plain = this->plain();
    session_.reset();  // rows of a prompt depend on how many are computed at once
    const Result result = generate(paper(kOften + ",exit-confidence=0"));
    EXPECT_EQ(result.tokens, plain.tokens);
    EXPECT_TRUE(result.speculation.row_invariant);
    EXPECT_GE(result.decisions.size(), 2u);
}

}  // namespace
}  // namespace knap::test::runtime_knapspec_paper_test
