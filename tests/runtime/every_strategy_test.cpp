// Whatever a strategy drafts, and however often it searches, the text is plain decoding's: the same
// tokens where the rule promises them, the same distribution where it promises that. One body for
// all strategies; a strategy that is not in the list fails the last test.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <limits>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "base/text.h"
#include "support/baseline.h"
#include "support/eager_profile.h"
#include "support/environment_variable.h"
#include "support/loaded_model.h"
#include "support/strategy_cases.h"
#include "support/tiny_model.h"
#include "support/two_samples.h"
#include "tools/make_model/shapes.h"

namespace knap::test::every_strategy_test {
namespace {

class EveryStrategy : public ::testing::TestWithParam<StrategyCase> {
  protected:
    EveryStrategy() : engine_(config_of(GetParam())), session_(engine_) {}

    std::vector<Token> prompt(int n, unsigned seed = 1) const {
        return prompt_of(GetParam(), engine_, n, seed);
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

    std::vector<std::vector<Token>> conversation() const {
        return conversation_of(GetParam(), engine_);
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

// Three runs that share what they learn: whatever the later ones begin with, the text is the same.
TEST_P(EveryStrategy, WritesWhatPlainDecodingWritesWithMemory) {
    const auto folder = temporary_folder() / "memory_of_strategies";
    const EnvironmentVariable cache("KNAP_CACHE_DIR", folder.string());
    RuntimeConfig config = config_of(GetParam());
    config.memory = true;
    for (int run = 0; run < 3; ++run) {
        Engine engine(config);
        Session session(engine);
        for (const float temperature : {0.0f, 0.8f}) {
            GenerateOptions request{.n_predict = 40, .ignore_eos = true};
            request.sampling = {.temperature = temperature, .seed = 11};
            for (const std::vector<Token>& tokens : conversation()) {
                const Result plain = plain_text(session_, tokens, request);
                request.speculation = GetParam().speculation;
                const Result result = session.generate(tokens, request);
                EXPECT_EQ(result.tokens, plain.tokens) << "run " << run;
                count(result.speculation);
            }
        }
    }
    expect_both_outcomes();
    expect_every_source();
    // Its drafts are those of a trained head.
    const bool is_learned_from = GetParam().speculation.strategy != "kangaroo";
    EXPECT_EQ(std::filesystem::exists(folder), is_learned_from);
    std::filesystem::remove_all(folder);
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

TEST_P(EveryStrategy, DrawsFromThePlainDistributionByTheRatioRule) {
    constexpr std::uint64_t kAnswers = 700;
    const int n_vocab = engine_.info().n_vocab;
    SpeculationOptions speculation = GetParam().speculation;
    speculation.acceptance = AcceptanceRule::ratio;
    TextCounts plain;
    TextCounts drafted;
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

INSTANTIATE_TEST_SUITE_P(All,
                         EveryStrategy,
                         ::testing::ValuesIn(strategy_cases()),
                         [](const auto& test) { return test.param.name; });

// Every architecture.
class Architectures : public ::testing::TestWithParam<const char*> {};

TEST_P(Architectures, EveryStrategyWritesWhatPlainDecodingWrites) {
    Engine engine(config_of_shape(GetParam()));
    Session session(engine);
    const std::vector<Token> tokens = random_tokens(90, 256, 3);
    GenerateOptions request{.n_predict = 40, .ignore_eos = true};
    const Result plain = plain_text(session, tokens, request);
    int n_drafted = 0;
    int n_accepted = 0;
    for (const StrategyCase& c : strategy_cases()) {
        if (c.is_eager) {
            continue;  // has a model of its own
        }
        request.speculation = c.speculation;
        const Result result = session.generate(tokens, request);
        EXPECT_EQ(result.tokens, plain.tokens) << c.name;
        EXPECT_TRUE(result.speculation.row_invariant) << c.name;
        n_drafted += result.speculation.n_drafted;
        n_accepted += result.speculation.n_accepted;
    }
    EXPECT_GT(n_accepted, 0);
    EXPECT_LT(n_accepted, n_drafted);
}

// But the largest, which have dozens of layers.
std::vector<const char*> small_shapes() {
    std::vector<const char*> shapes = shapes_named("tiny-");
    std::erase_if(shapes, [](const char* shape) { return find_shape(shape).n_layers > 8; });
    return shapes;
}

// Only with 64 layers EXAONE 4 has windows, and layers that do not rotate.
INSTANTIATE_TEST_SUITE_P(Windows,
                         Architectures,
                         ::testing::Values("tiny-exaone4-windows"),
                         name_of_shape);

INSTANTIATE_TEST_SUITE_P(All, Architectures, ::testing::ValuesIn(small_shapes()), name_of_shape);

GenerateOptions sampled(int n_predict) {
    GenerateOptions request{.n_predict = n_predict, .ignore_eos = true};
    request.sampling = {.temperature = 0.8f, .repeat_penalty = 1.1f, .seed = 11};
    return request;
}

// Those whose passes differ most from a dense decoder's: windows of layers, and experts.
class SampledArchitectures : public ::testing::TestWithParam<const char*> {};

TEST_P(SampledArchitectures, EveryStrategyWritesWhatPlainSamplingWrites) {
    Engine engine(config_of_shape(GetParam()));
    Session session(engine);
    const std::vector<Token> tokens = random_tokens(90, 256, 3);
    GenerateOptions request = sampled(40);
    const Result plain = plain_text(session, tokens, request);
    int n_drafted = 0;
    int n_accepted = 0;
    for (const AcceptanceRule rule : {AcceptanceRule::shared_noise, AcceptanceRule::equality}) {
        for (const StrategyCase& c : strategy_cases()) {
            if (c.is_eager) {
                continue;  // EagerArchitectures
            }
            request.speculation = c.speculation;
            request.speculation.acceptance = rule;
            const Result result = session.generate(tokens, request);
            EXPECT_EQ(result.tokens, plain.tokens) << c.name;
            EXPECT_TRUE(result.speculation.row_invariant) << c.name;
            n_drafted += result.speculation.n_drafted;
            n_accepted += result.speculation.n_accepted;
        }
    }
    EXPECT_GT(n_accepted, 0);
    EXPECT_LT(n_accepted, n_drafted);
}

INSTANTIATE_TEST_SUITE_P(All,
                         SampledArchitectures,
                         ::testing::Values("tiny-gemma3", "tiny-gpt-oss"),
                         name_of_shape);

// The default strategy drafts with plans where layers have windows of their own: with shorter
// windows, or without some attentions, if the cache is what is slow; without MLPs if the weights
// are.
struct EagerCase {
    const char* shape;
    Slow slow;
};

void PrintTo(const EagerCase& c, std::ostream* out) {
    *out << c.shape << '/' << (c.slow == Slow::cache ? "cache" : "weights");
}

class EagerArchitectures : public ::testing::TestWithParam<EagerCase> {};

TEST_P(EagerArchitectures, DraftWithPlansWhatPlainDecodingWrites) {
    const auto [shape, slow] = GetParam();
    const EnvironmentVariable cache("KNAP_CACHE_DIR", (temporary_folder() / "eager").string());
    RuntimeConfig config = config_of_shape(shape);
    config.n_ctx = 1024;
    Engine engine(with_eager_profile(config, slow));
    Session session(engine);
    SourceStatistics plans;
    for (const int n_prompt : {400, 900}) {
        const std::vector<Token> tokens = random_tokens(n_prompt, 256, 3);
        for (const float temperature : {0.0f, 0.8f}) {
            GenerateOptions request = sampled(60);
            request.sampling.temperature = temperature;
            const Result plain = plain_text(session, tokens, request);
            request.speculation = eager_knapspec();
            for (const AcceptanceRule rule :
                 {AcceptanceRule::shared_noise, AcceptanceRule::equality}) {
                request.speculation.acceptance = rule;
                const Result result = session.generate(tokens, request);
                EXPECT_EQ(result.tokens, plain.tokens);
                EXPECT_TRUE(result.speculation.row_invariant);
                plans.n_drafted += result.speculation.plans.n_drafted;
                plans.n_accepted += result.speculation.plans.n_accepted;
            }
        }
    }
    EXPECT_GT(plans.n_accepted, 0);
    EXPECT_LT(plans.n_accepted, plans.n_drafted);
}

// Fewer experts where the weights are slow: tests/runtime/expert_plans_test.cpp.
INSTANTIATE_TEST_SUITE_P(All,
                         EagerArchitectures,
                         ::testing::Values(EagerCase{"tiny-gemma3", Slow::cache},
                                           EagerCase{"tiny-gemma3", Slow::weights},
                                           EagerCase{"tiny-gpt-oss", Slow::cache}),
                         [](const auto& test) {
                             return test_name_of(
                                 concat(test.param.shape,
                                        test.param.slow == Slow::cache ? "_cache" : "_weights"));
                         });

// With fewer experts than the model uses.
TEST(FewerExperts, DraftWhatPlainDecodingAcceptsOrNot) {
    for (const char* shape : {"tiny-qwen3moe", "tiny-gpt-oss"}) {
        Engine engine(config_of_shape(shape));
        Session session(engine);
        const std::vector<Token> tokens = random_tokens(90, 256, 3);
        GenerateOptions request{.n_predict = 40, .ignore_eos = true};
        const Result plain = plain_text(session, tokens, request);
        int n_drafted = 0;
        int n_accepted = 0;
        for (const char* plan : {"m=e1", "m=e2", "m0=e1,m2-3=e2", "a1=skip,m=e2"}) {
            request.speculation = {.strategy = "static", .settings = {{"plan", plan}}};
            const Result result = session.generate(tokens, request);
            EXPECT_EQ(result.tokens, plain.tokens) << shape << ", " << plan;
            n_drafted += result.speculation.n_drafted;
            n_accepted += result.speculation.n_accepted;
        }
        EXPECT_GT(n_accepted, 0) << shape;
        EXPECT_LT(n_accepted, n_drafted) << shape;
    }
}

TEST(FewerExperts, AreRefusedWhereTheModelUsesNoMore) {
    const auto refusal = [](const char* shape, const char* plan) -> std::string {
        Engine engine(config_of_shape(shape));
        Session session(engine);
        try {
            session.generate(random_tokens(9, 256, 3),
                             {.n_predict = 2,
                              .speculation = {.strategy = "static", .settings = {{"plan", plan}}}});
        } catch (const Error& error) {
            return error.what();
        }
        return "accepted";
    };
    EXPECT_EQ(refusal("tiny-qwen3moe", "m=e2"), "accepted");
    EXPECT_EQ(refusal("tiny-qwen3moe", "m1=e3"),
              "`.settings[plan]`: expected 1 to 2 of the 3 experts that a token uses, found e3");
    EXPECT_EQ(refusal("tiny-llama", "m1=e3"),
              "`.settings[plan]`: expected no level with fewer experts, because in this model no "
              "layer has experts; found e3");
}

TEST(EveryStrategyList, IsComplete) {
    std::set<std::string> covered{"autoregressive"};
    for (const StrategyCase& c : strategy_cases()) {
        covered.insert(c.speculation.strategy);
    }
    for (const StrategyInfo& strategy : strategies()) {
        EXPECT_TRUE(covered.contains(std::string(strategy.name))) << strategy.name;
    }
}

}  // namespace
}  // namespace knap::test::every_strategy_test
