// What Observer::on_token receives: every token of the answer, with log-probabilities on request,
// the same whatever was drafted.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "support/baseline.h"
#include "support/eager_profile.h"
#include "support/loaded_model.h"
#include "support/strategy_cases.h"
#include "support/tiny_model.h"

namespace knap::test::token_events_test {
namespace {

// A TokenEvent without its origin, which depends on what was drafted. Log-probabilities are
// compared bit for bit.
struct Seen {
    Token token;
    int position;
    std::uint32_t logprob;
    std::vector<std::pair<Token, std::uint32_t>> top;

    bool operator==(const Seen&) const = default;
};

void PrintTo(const Seen& seen, std::ostream* out) {
    *out << "token " << seen.token << " at " << seen.position << ", logprob "
         << std::bit_cast<float>(seen.logprob) << ", top " << seen.top.size();
}

// An observer, and what it has received.
struct Record {
    std::vector<Seen> seen;
    Observer observer{.on_token = [this](const TokenEvent& event) {
        seen.push_back({.token = event.token,
                        .position = event.position,
                        .logprob = std::bit_cast<std::uint32_t>(event.logprob),
                        .top = {}});
        for (const TokenLogprob& entry : event.top) {
            seen.back().top.emplace_back(entry.token, std::bit_cast<std::uint32_t>(entry.logprob));
        }
    }};

    Record() = default;
    Record(const Record&) = delete;  // the observer points to it
    Record& operator=(const Record&) = delete;

    std::vector<Token> tokens() const {
        std::vector<Token> all;
        for (const Seen& one : seen) {
            all.push_back(one.token);
        }
        return all;
    }
};

GenerateOptions sampled(GenerateOptions request) {
    request.sampling = {.temperature = 0.8f, .repeat_penalty = 1.1f, .seed = 11};
    return request;
}

class TokenEventsOfEveryStrategy : public ::testing::TestWithParam<StrategyCase> {
  protected:
    TokenEventsOfEveryStrategy() : engine_(config_of(GetParam())), session_(engine_) {}

    void expect_plain_events(const std::vector<Token>& prompt, GenerateOptions request) {
        Record plain;
        plain_text(session_, prompt, request, plain.observer);
        request.speculation = GetParam().speculation;
        Record drafted;
        const Result result = session_.generate(prompt, request, drafted.observer);

        EXPECT_TRUE(result.speculation.row_invariant);
        EXPECT_EQ(drafted.seen, plain.seen);
        EXPECT_EQ(drafted.tokens(), result.tokens);
        n_accepted_ += result.speculation.n_accepted;
        sources_.add(result.speculation);
    }

    Engine engine_;
    Session session_;
    int n_accepted_ = 0;
    SourceCounts sources_;
};

TEST_P(TokenEventsOfEveryStrategy, AreThoseOfPlainDecoding) {
    const GenerateOptions greedy{.n_predict = 70, .ignore_eos = true, .n_logprobs = 4};
    for (const GenerateOptions& request : {greedy, sampled(greedy)}) {
        for (const std::vector<Token>& prompt : conversation_of(GetParam(), engine_)) {
            SCOPED_TRACE(prompt.size());
            expect_plain_events(prompt, request);
        }
    }
    // A test in which nothing is accepted shows little.
    if (GetParam().always_drafts) {
        EXPECT_GT(n_accepted_, 0);
    }
    if (GetParam().is_eager) {
        sources_.expect_both_outcomes_of_each();
    }
}

// Counts per source of Observer::on_round, in the order of DraftSource.
struct RoundCounts {
    std::array<SourceStatistics, 5> by_source{};
    int n_tokens = 0;

    void add(const RoundEvent& event) {
        SourceStatistics& source = by_source.at(static_cast<std::size_t>(event.source));
        ++source.rounds;
        source.n_drafted += event.n_drafted;
        source.n_accepted += event.n_accepted;
        n_tokens += event.n_tokens;
        const bool needs_plan =
            event.source == DraftSource::plan || event.source == DraftSource::cascade;
        EXPECT_EQ(!event.plan.empty(), needs_plan);
    }
    void expect_source(DraftSource source, const SourceStatistics& expected) const {
        const SourceStatistics& counted = by_source.at(static_cast<std::size_t>(source));
        EXPECT_EQ(counted.rounds, expected.rounds) << to_string(source);
        EXPECT_EQ(counted.n_drafted, expected.n_drafted) << to_string(source);
        EXPECT_EQ(counted.n_accepted, expected.n_accepted) << to_string(source);
    }
};

TEST_P(TokenEventsOfEveryStrategy, RoundsAddUpToTheStatistics) {
    const std::vector<Token> prompt = prompt_of(GetParam(), engine_, 40);
    const GenerateOptions request{
        .n_predict = 60, .speculation = GetParam().speculation, .ignore_eos = true};
    RoundCounts counts;
    int n_seen = 0;
    Observer observer{.on_token = [&](const TokenEvent&) { ++n_seen; }};
    observer.on_round = [&](const RoundEvent& event) {
        counts.add(event);
        EXPECT_EQ(counts.n_tokens, n_seen) << "a round follows its tokens";
    };
    const Result result = session_.generate(prompt, request, observer);
    EXPECT_EQ(counts.n_tokens, result.n_generated);
    const SpeculationStatistics& expected = result.speculation;
    counts.expect_source(DraftSource::copy, expected.copies);
    counts.expect_source(DraftSource::plan, expected.plans);
    counts.expect_source(DraftSource::cascade, expected.cascades);
    const int n_drafting =
        expected.copies.rounds + expected.plans.rounds + expected.cascades.rounds;
    EXPECT_EQ(counts.by_source[0].rounds, 1 + expected.rounds - n_drafting);
}

INSTANTIATE_TEST_SUITE_P(All,
                         TokenEventsOfEveryStrategy,
                         ::testing::ValuesIn(strategy_cases()),
                         [](const auto& test) { return test.param.name; });

class TokenEvents : public ::testing::Test {
  protected:
    static constexpr int kPrompt = 20;

    static std::filesystem::path model() { return tiny_model("tiny-llama", "Q8_0"); }

    // Drafts trees, of which later branches are accepted now and then.
    static SpeculationOptions tree() {
        return {.strategy = "static", .settings = {{"plan", "m1=skip"}, {"width", "4"}}};
    }

    Engine engine_{{.model_path = model(), .n_ctx = 128, .n_threads = 1}};
    Session session_{engine_};
    const std::vector<Token> prompt_ = random_tokens(kPrompt, 256, 1);
};

// The logits of every token, computed again in one pass over prompt and answer.
std::vector<std::vector<float>> all_logits(const std::filesystem::path& model,
                                           std::vector<Token> tokens,
                                           std::span<const Token> answer) {
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    LoadedModel loaded(model, Repack::automatic, 1, Kernels::automatic);
    return ForwardRig(loaded).feed(tokens);
}

double naive_logprob(const std::vector<float>& logits, Token token) {
    double total = 0;
    for (const float logit : logits) {
        total += std::exp(static_cast<double>(logit));
    }
    return logits[static_cast<std::size_t>(token)] - std::log(total);
}

// Whatever changes the choice of tokens, and whatever is drafted.
TEST_F(TokenEvents, LogprobsAreThoseOfTheRawLogits) {
    GenerateOptions request = sampled({.n_predict = 60, .ignore_eos = true, .n_logprobs = 3});
    request.sampling.logit_bias = {{65, 3.0f}, {66, -3.0f}};
    request.speculation = tree();
    Record record;
    const Result result = session_.generate(prompt_, request, record.observer);
    ASSERT_GT(result.speculation.n_accepted, 0);
    ASSERT_EQ(record.seen.size(), 60u);

    const auto logits = all_logits(model(), prompt_, result.tokens);
    int n_surprises = 0;
    for (std::size_t i = 0; i < record.seen.size(); ++i) {
        const Seen& seen = record.seen[i];
        const std::vector<float>& row = logits[kPrompt + i - 1];
        EXPECT_EQ(seen.position, kPrompt + static_cast<int>(i));
        EXPECT_NEAR(std::bit_cast<float>(seen.logprob), naive_logprob(row, seen.token), 1e-5);
        ASSERT_EQ(seen.top.size(), 3u);
        EXPECT_EQ(seen.top[0].first, std::ranges::max_element(row) - row.begin());
        for (const auto& [token, logprob] : seen.top) {
            EXPECT_NEAR(std::bit_cast<float>(logprob), naive_logprob(row, token), 1e-5);
        }
        n_surprises += seen.token != seen.top[0].first ? 1 : 0;
    }
    EXPECT_GT(n_surprises, 0) << "sampling should not always take the most probable token";
}

TEST_F(TokenEvents, HaveOnlyTheLogprobsThatWereRequested) {
    GenerateOptions request{.n_predict = 10, .ignore_eos = true};
    Record none;
    const Result result = session_.generate(prompt_, request, none.observer);
    EXPECT_EQ(none.tokens(), result.tokens);
    for (const Seen& seen : none.seen) {
        EXPECT_EQ(std::bit_cast<float>(seen.logprob), 0.0f);
        EXPECT_TRUE(seen.top.empty());
    }
    request.n_logprobs = 0;
    Record own;
    session_.generate(prompt_, request, own.observer);
    request.n_logprobs = kMaxLogprobs;
    Record all;
    session_.generate(prompt_, request, all.observer);
    ASSERT_EQ(own.seen.size(), all.seen.size());
    for (std::size_t i = 0; i < own.seen.size(); ++i) {
        EXPECT_LT(std::bit_cast<float>(own.seen[i].logprob), 0.0f);
        EXPECT_EQ(own.seen[i].logprob, all.seen[i].logprob);
        EXPECT_TRUE(own.seen[i].top.empty());
        EXPECT_EQ(all.seen[i].top.size(), static_cast<std::size_t>(kMaxLogprobs));
    }
}

// However an answer ends, also inside what a round emits.
TEST_F(TokenEvents, AreTheTokensOfTheResult) {
    for (const int n_predict : {0, 1, 2, 7}) {
        Record record;
        const GenerateOptions request{
            .n_predict = n_predict, .speculation = tree(), .ignore_eos = true};
        const Result result = session_.generate(prompt_, request, record.observer);
        EXPECT_EQ(record.tokens(), result.tokens);
    }
    GenerateOptions ends{.n_predict = 100, .speculation = tree()};
    ends.sampling = {.temperature = 1.0f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f};
    for (Token token = 256; token < 260; ++token) {
        ends.sampling.logit_bias.emplace_back(token, 2.0f);
    }
    int n_ended = 0;
    for (ends.sampling.seed = 1; ends.sampling.seed <= 8; ++ends.sampling.seed) {
        Record record;
        const Result result = session_.generate(prompt_, ends, record.observer);
        EXPECT_EQ(record.tokens(), result.tokens);
        n_ended += result.stop == StopReason::eos ? 1 : 0;
    }
    EXPECT_GT(n_ended, 0);
}

TEST_F(TokenEvents, OutOfRangeIsAnErrorThatChangesNothing) {
    const Result before = session_.generate(prompt_, {.n_predict = 3, .ignore_eos = true});
    const auto history = session_.history();
    const std::vector<Token> kept(history.begin(), history.end());
    for (const int n_logprobs : {-2, kMaxLogprobs + 1}) {
        std::string message;
        try {
            session_.generate(random_tokens(5, 256, 2), {.n_logprobs = n_logprobs});
        } catch (const Error& error) {
            message = error.what();
        }
        EXPECT_EQ(message, "`.n_logprobs`: expected -1..20, found " + std::to_string(n_logprobs));
        EXPECT_THAT(session_.history(), ::testing::ElementsAreArray(kept));
    }
}

}  // namespace
}  // namespace knap::test::token_events_test
