// Whatever a strategy drafts, and however often it searches, the text is plain decoding's: the same
// tokens where the rule promises them, the same distribution where it promises that. One body for
// all strategies; a strategy that is not in the list fails the last test.
#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "support/baseline.h"
#include "support/eager_profile.h"
#include "support/loaded_model.h"
#include "support/tiny_adapter.h"
#include "support/tiny_model.h"
#include "support/trained_model.h"

namespace knap::test::every_strategy_test {
namespace {

struct StrategyCase {
    const char* name;
    SpeculationOptions speculation;
    bool always_drafts = true;  // also where that does not pay
    // On a trained model, with a profile that leaves nothing to the machine's speed.
    bool is_eager = false;
};

void PrintTo(const StrategyCase& c, std::ostream* out) {
    *out << c.name;
}

// Random weights hardly agree with themselves when modules are missing, so little is pruned, drafts
// go on when they are unsure, and searches follow each other closely.
const std::vector<StrategyCase> kCases{
    {"Static", {.strategy = "static", .settings = {{"plan", "m1=skip"}}}},
    {"Tree", {.strategy = "static", .settings = {{"plan", "m1=skip"}, {"width", "3"}}}},
    {"Lookup", {.strategy = "lookup"}},
    {"Cascade", {.strategy = "cascade", .settings = {{"plan", "a2=w4+20,m3=skip"}}}},
    {"Knapspec", {.strategy = "knapspec", .settings = {{"budget", "1"}, {"margin", "0"}}}, false},
    {"EagerKnapspec", eager_knapspec(), true, true},
    {"KnapspecPaper",
     {.strategy = "knapspec-paper",
      .settings =
          {{"tau", "-1"}, {"interval", "7"}, {"start", "prompt"}, {"exit-confidence", "0"}}}},
    {"Clasp",
     {.strategy = "clasp",
      .draft_max = 2,
      .settings = {{"exit-confidence", "1e-6"}, {"interval", "1"}}}},
    {"ClaspHalf",
     {.strategy = "clasp",
      .draft_max = 2,
      .settings = {{"exit-confidence", "1e-6"}, {"layers", "paper"}, {"interval", "2"}}}},
    {"Swift",
     {.strategy = "swift",
      .draft_max = 5,
      .settings = {{"exit-confidence", "1e-6"}, {"window", "2"}, {"bayes-interval", "3"}}}},
    {"SwiftChain",
     {.strategy = "swift",
      .draft_max = 5,
      .settings =
          {{"exit-confidence", "1e-6"}, {"window", "8"}, {"tree", "off"}, {"ratio", "0.25"}}}},
    {"Del", {.strategy = "del"}},
    {"DraftVerify", {.strategy = "draft-verify", .settings = {{"plan", "a2=skip,m1=skip"}}}},
    {"DraftVerifyFixed",
     {.strategy = "draft-verify",
      .settings = {{"plan", "a1=skip"}, {"exit-confidence", "0.01"}, {"eps", "0"}}}},
    {"Asd", {.strategy = "asd", .settings = {{"theta", "-1"}, {"exit-confidence", "0.01"}}}},
    {"AsdOften",
     {.strategy = "asd",
      .settings = {{"theta", "-1"},
                   {"max-run", "1"},
                   {"refresh", "2"},
                   {"rows", "5"},
                   {"exit-confidence", "0"}}}},
    {"Layerskip", {.strategy = "layerskip", .draft_max = 2, .settings = {{"exit", "3"}}}},
    {"Kangaroo", {.strategy = "kangaroo", .settings = {{"exit-confidence", "1e-6"}}}},
    {"DelByLength", {.strategy = "del", .settings = {{"stop", "length"}, {"prompt-rows", "4"}}}},
};

constexpr int kContext = 256;
// The controller's windows are for contexts of some hundred tokens.
constexpr int kEagerFactor = 4;

class EveryStrategy : public ::testing::TestWithParam<StrategyCase> {
  protected:
    EveryStrategy() : engine_(config()), session_(engine_) {}

    static RuntimeConfig config() {
        if (GetParam().is_eager) {
            return with_eager_profile(
                {.model_path = trained_model(), .n_ctx = kEagerFactor * kContext, .n_threads = 1});
        }
        return {.model_path = tiny_model("tiny-llama", "Q8_0"),
                .adapter_path = write_tiny(tiny_adapter({.exit_layer = 3, .gain = 0.3f}),
                                           "every-strategy-adapter.gguf"),
                .n_ctx = kContext,
                .n_threads = 1};
    }

    // Random, or, four times as long, part of a text that repeats itself.
    std::vector<Token> prompt(int n, unsigned seed = 1) const {
        if (!GetParam().is_eager) {
            return random_tokens(n, 256, seed);
        }
        std::string text;
        while (text.size() < kEagerFactor * kContext + 100) {
            text +=
                "The river carries stones from the hills to the sea. The sea wears the stones. ";
        }
        const std::vector<Token> tokens = engine_.tokenize(text, /*add_bos=*/false);
        const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(10 * seed);
        return {begin, begin + kEagerFactor * n};
    }

    Result generate(const std::vector<Token>& tokens,
                    const SpeculationOptions& speculation,
                    const GenerateOptions& request,
                    const Observer& observer = {}) {
        GenerateOptions options = request;
        options.speculation = speculation;
        return session_.generate(tokens, options, observer);
    }

    // Both in one session, the strategy's answers one after the other.
    void expect_plain_text(const std::vector<std::vector<Token>>& prompts,
                           const GenerateOptions& request,
                           const SpeculationOptions& speculation) {
        std::vector<Result> plain;
        for (const std::vector<Token>& tokens : prompts) {
            plain.push_back(plain_text(session_, tokens, request));
        }
        for (std::size_t i = 0; i < prompts.size(); ++i) {
            SCOPED_TRACE(i);
            const Result result = generate(prompts[i], speculation, request);
            EXPECT_EQ(result.tokens, plain[i].tokens);
            EXPECT_EQ(result.stop, plain[i].stop);
            EXPECT_TRUE(result.speculation.row_invariant);
            count(result.speculation);
        }
    }

    void count(const SpeculationStatistics& statistics) {
        n_drafted_ += statistics.n_drafted;
        n_accepted_ += statistics.n_accepted;
        sources_.add(statistics);
    }

    // A test of exactness in which nothing is accepted, or nothing rejected, shows little.
    void expect_both_outcomes() const {
        if (GetParam().always_drafts) {
            EXPECT_GT(n_accepted_, 0);
            EXPECT_LT(n_accepted_, n_drafted_);
        }
    }

    void expect_every_source() const {
        if (GetParam().is_eager) {
            sources_.expect_both_outcomes_of_each();
        }
    }

    // Prompts that continue one another, return to their beginning, and have nothing in common.
    std::vector<std::vector<Token>> conversation() const {
        std::vector<Token> longer = prompt(60);
        longer.resize(40);
        std::vector<Token> other_end = prompt(60);
        other_end.back() = (other_end.back() + 1) % 256;
        return {prompt(60), longer, other_end, prompt(1, 5), prompt(130, 7), prompt(60)};
    }

    Engine engine_;
    Session session_;
    int n_drafted_ = 0;
    int n_accepted_ = 0;
    SourceCounts sources_;
};

TEST_P(EveryStrategy, WritesWhatPlainDecodingWrites) {
    expect_plain_text(conversation(), {.n_predict = 70, .ignore_eos = true},
                      GetParam().speculation);
    expect_both_outcomes();
    expect_every_source();
}

TEST_P(EveryStrategy, WritesWhatPlainSamplingWrites) {
    for (const AcceptanceRule rule : {AcceptanceRule::shared_noise, AcceptanceRule::equality}) {
        SpeculationOptions speculation = GetParam().speculation;
        speculation.acceptance = rule;
        GenerateOptions request{.n_predict = 50, .ignore_eos = true};
        request.sampling = {.temperature = 0.8f, .repeat_penalty = 1.1f, .seed = 11};
        expect_plain_text(conversation(), request, speculation);
    }
    expect_every_source();
}

TEST_P(EveryStrategy, FillsTheContextToItsLastToken) {
    expect_plain_text({prompt(200), prompt(255), prompt(256)}, {.ignore_eos = true},
                      GetParam().speculation);
}

// What was written when it ended is plain decoding's, and so is what the session writes next.
TEST_P(EveryStrategy, MayBeCancelledAnywhere) {
    const GenerateOptions request{.n_predict = 60, .ignore_eos = true};
    const Result plain = plain_text(session_, prompt(40), request);
    int n_cancelled = 0;
    for (int n_polls = 1; n_polls < 3000; n_polls = n_polls * 4 / 3 + 1) {
        session_.reset();
        std::atomic<int> n_left = n_polls;
        const Observer observer{.is_cancelled = [&] { return n_left.fetch_sub(1) <= 0; }};
        const Result cut = generate(prompt(40), GetParam().speculation, request, observer);
        ASSERT_LE(cut.tokens.size(), plain.tokens.size());
        EXPECT_TRUE(std::equal(cut.tokens.begin(), cut.tokens.end(), plain.tokens.begin()));
        n_cancelled += cut.stop == StopReason::cancelled ? 1 : 0;
        if (n_polls % 3 == 0) {  // without a reset in between
            EXPECT_EQ(generate(prompt(40), GetParam().speculation, request).tokens, plain.tokens);
        }
    }
    EXPECT_GT(n_cancelled, 3);
}

// Three tokens can be drawn, so that the last two of an answer have nine outcomes.
GenerateOptions three_tokens(int n_vocab, std::uint64_t seed) {
    GenerateOptions request{.n_predict = 8, .ignore_eos = true};
    request.sampling = {
        .temperature = 1.0f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .seed = seed};
    for (Token token = 3; token < n_vocab; ++token) {
        request.sampling.logit_bias.emplace_back(token, -std::numeric_limits<float>::infinity());
    }
    return request;
}

using Counts = std::map<std::vector<Token>, int>;

// Of two samples of the same size: large when they come from different distributions.
double chi_square(const Counts& a, const Counts& b) {
    std::set<std::vector<Token>> outcomes;
    for (const Counts* counts : {&a, &b}) {
        for (const auto& [outcome, n] : *counts) {
            outcomes.insert(outcome);
        }
    }
    double sum = 0;
    for (const std::vector<Token>& outcome : outcomes) {
        const double n_a = a.contains(outcome) ? a.at(outcome) : 0;
        const double n_b = b.contains(outcome) ? b.at(outcome) : 0;
        sum += (n_a - n_b) * (n_a - n_b) / (n_a + n_b);
    }
    return sum;
}

TEST_P(EveryStrategy, DrawsFromThePlainDistributionByTheRatioRule) {
    constexpr std::uint64_t kAnswers = 700;
    const int n_vocab = engine_.info().n_vocab;
    SpeculationOptions speculation = GetParam().speculation;
    speculation.acceptance = AcceptanceRule::ratio;
    Counts plain;
    Counts drafted;
    for (std::uint64_t seed = 1; seed <= kAnswers; ++seed) {
        const auto end = [](const Result& result) {
            return std::vector<Token>(result.tokens.end() - 2, result.tokens.end());
        };
        ++plain[end(plain_text(session_, prompt(20), three_tokens(n_vocab, seed)))];
        const Result result =
            generate(prompt(20), speculation, three_tokens(n_vocab, kAnswers + seed));
        ++drafted[end(result)];
        count(result.speculation);
    }
    // Eight degrees of freedom: 28 is exceeded once in 2,000 times.
    EXPECT_LT(chi_square(plain, drafted), 28);
    EXPECT_EQ(plain.size(), 9u);
    expect_both_outcomes();
}

INSTANTIATE_TEST_SUITE_P(All, EveryStrategy, ::testing::ValuesIn(kCases), [](const auto& test) {
    return test.param.name;
});

TEST(EveryStrategyList, IsComplete) {
    std::set<std::string> covered{"autoregressive"};
    for (const StrategyCase& c : kCases) {
        covered.insert(c.speculation.strategy);
    }
    for (const StrategyInfo& strategy : strategies()) {
        EXPECT_TRUE(covered.contains(std::string(strategy.name))) << strategy.name;
    }
}

}  // namespace
}  // namespace knap::test::every_strategy_test
