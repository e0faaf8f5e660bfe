// Chains of drafts with the CUDA kernels, against single steps whose tokens the host chooses.
#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "base/text.h"
#include "sampling/draft_sampler.h"
#include "support/strip_model.h"
#include "support/tiny_model.h"
#include "tools/make_model/random_model.h"

namespace knap::test::cuda_chain_gpu_test {
namespace {

constexpr int kContext = 40;
constexpr int kSteps = 16;
constexpr float kTolerance = 1e-4f;  // of confidences: sums of exponentials in another order

struct DrawCase {
    const char* name;
    SamplingOptions sampling;
};

void PrintTo(const DrawCase& c, std::ostream* out) {
    *out << c.name;
}

// A vocabulary that all blocks of the kernel have a part of.
std::filesystem::path model_of_many_tokens() {
    auto path = temporary_folder() / "many-tokens.gguf";
    if (!std::filesystem::exists(path)) {
        write_random_model({.shape = "smollm2-135m", .type = "Q8_0", .n_layers = 2}, path);
    }
    return path;
}

struct Chain {
    std::vector<Token> tokens;
    std::vector<float> confidences;
    std::vector<std::vector<float>> captures;
};

class ChainRig {
  public:
    explicit ChainRig(const std::filesystem::path& path)
        : model_(path),
          devices_(model_.device_models()),
          text_(model_.config(), devices_, 512, 64) {
        const auto prompt = random_tokens(kContext, model_.config().n_vocab, 1);
        forward().run({.tokens = prompt, .first_row = 0});
        text_.sequence().commit(kContext);
    }

    Forward& forward() { return text_.forward(); }
    const ModelConfig& config() const { return model_.config(); }

    Chain run(ChainRequest request) {
        request.first_row = kContext;
        const ChainResult result = forward().run_chain(request);
        EXPECT_TRUE(result.is_complete);
        Chain chain{.tokens = {result.tokens.begin(), result.tokens.end()},
                    .confidences = {result.probabilities.begin(), result.probabilities.end()}};
        for (const auto capture : result.captures) {
            chain.captures.emplace_back(capture.begin(), capture.end());
        }
        return chain;
    }

    // The logits after row kContext + step, which holds `token`.
    std::vector<float> step(Token token, int step, const ModulePlan* plan = nullptr) {
        const int row = 0;
        const auto logits = forward()
                                .run({.tokens = std::span(&token, 1),
                                      .plan = plan,
                                      .first_row = kContext + step,
                                      .layout = {.context = kContext},
                                      .logit_rows = std::span(&row, 1)})
                                .logits;
        return {logits.begin(), logits.end()};
    }

  private:
    StripModel model_;
    DeviceModels devices_;
    SingleSequence text_;
};

DrawRule rule_of(const SamplingOptions& options, const ModelConfig& config) {
    return *Sampler(options, config.n_vocab, 1024).draw_rule();
}

// How many of a chain's tokens the host draws, too, from the logits of single steps.
int count_equal(ChainRig& rig, const Chain& chain, Token first, const SamplingOptions& sampling) {
    Sampler sampler(sampling, rig.config().n_vocab, 1024);
    DraftSampler drafts(sampler, AcceptanceRule::shared_noise);
    int n_equal = 0;
    Token token = first;
    for (std::size_t i = 0; i < chain.tokens.size(); ++i) {
        const int step = static_cast<int>(i);
        const std::vector<float> logits = rig.step(token, step);
        const DraftChoice& choice = drafts.choose(logits, kContext + step + 1, 1);
        token = chain.tokens[i];
        n_equal += choice.tokens.front() == token ? 1 : 0;
        EXPECT_NEAR(chain.confidences[i], confidence(logits, token), kTolerance) << "step " << i;
    }
    return n_equal;
}

class DrawnChains : public ::testing::TestWithParam<DrawCase> {};

void expect_draws_of_the_host(const std::filesystem::path& path, SamplingOptions sampling) {
    ChainRig rig(path);
    int n_equal = 0;
    int n_drawn = 0;
    for (unsigned seed = 0; seed < 24; ++seed) {
        sampling.seed = seed;
        const Token first = random_tokens(1, rig.config().n_vocab, seed).front();
        const Chain chain =
            rig.run({.token = first, .n_steps = kSteps, .draw = rule_of(sampling, rig.config())});
        ASSERT_EQ(chain.tokens.size(), static_cast<std::size_t>(kSteps));
        n_equal += count_equal(rig, chain, first, sampling);
        n_drawn += kSteps;
    }
    ::testing::Test::RecordProperty("draws_of_the_host", n_equal);
    EXPECT_GE(n_equal, n_drawn - 1);
}

TEST_P(DrawnChains, HaveTheHostsDraws) {
    KNAP_SKIP_WITHOUT_STRIPS();
    expect_draws_of_the_host(tiny_model("small-llama", "Q8_0"), GetParam().sampling);
}

TEST_P(DrawnChains, HaveTheHostsDrawsOfManyTokens) {
    KNAP_SKIP_WITHOUT_STRIPS();
    expect_draws_of_the_host(model_of_many_tokens(), GetParam().sampling);
}

INSTANTIATE_TEST_SUITE_P(
    Transforms,
    DrawnChains,
    ::testing::Values(
        DrawCase{"Greedy", {.temperature = 0}},
        DrawCase{"Defaults", {.temperature = 0.8f}},
        DrawCase{"Hot", {.temperature = 2.5f}},
        DrawCase{"TopK", {.temperature = 1, .top_k = 100, .top_p = 1, .min_p = 0}},
        DrawCase{"TopKOfOne", {.temperature = 1, .top_k = 1, .top_p = 1, .min_p = 0}},
        DrawCase{"TopKAndTopP", {.temperature = 1, .top_k = 90, .top_p = 0.6f, .min_p = 0}},
        DrawCase{"TopKAndMinP", {.temperature = 1, .top_k = 90, .top_p = 1, .min_p = 0.3f}},
        DrawCase{"MinP", {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0.1f}},
        DrawCase{"MinPAndTopP", {.temperature = 0.3f, .top_k = 0, .top_p = 0.9f, .min_p = 0.05f}},
        DrawCase{"TopP", {.temperature = 0.1f, .top_k = 0, .top_p = 0.7f, .min_p = 0}},
        DrawCase{"Temperature", {.temperature = 1.3f, .top_k = 0, .top_p = 1, .min_p = 0}}),
    [](const auto& param) { return std::string(param.param.name); });

// The tokens that a chain without a rule draws, as far as the rule lets it go.
TEST(StoppedChains, EndWhereTheRuleSays) {
    KNAP_SKIP_WITHOUT_STRIPS();
    ChainRig rig(tiny_model("small-llama", "Q4_0"));
    const SamplingOptions sampling{.temperature = 0.7f, .seed = 3};
    for (const ConfidenceOf whose :
         {ConfidenceOf::drafted, ConfidenceOf::most_probable, ConfidenceOf::drawn}) {
        for (const bool is_greedy : {false, true}) {
            DrawRule draw = rule_of(sampling, rig.config());
            draw.temperature = is_greedy ? 0 : draw.temperature;
            const StopState never(StopRule{.n_max = 100, .confidence_of = whose});
            const Chain whole =
                rig.run({.token = 5, .n_steps = kSteps, .draw = draw, .stop = &never});
            ASSERT_EQ(whole.tokens.size(), static_cast<std::size_t>(kSteps));
            std::vector<float> sorted = whole.confidences;
            std::ranges::sort(sorted);
            for (const float least : {sorted[0], sorted[1], sorted[kSteps / 2]}) {
                const StopState stop(StopRule{
                    .n_max = 100, .exit_confidence = least * 1.001f, .confidence_of = whose});
                const Chain chain =
                    rig.run({.token = 5, .n_steps = kSteps, .draw = draw, .stop = &stop});
                StopState expected = stop;
                std::size_t n = 0;
                while (n < whole.tokens.size() && expected.goes_on(whole.confidences[n++], false)) {
                }
                ASSERT_EQ(chain.tokens.size(), n) << "least " << least;
                EXPECT_TRUE(std::ranges::equal(chain.tokens, std::span(whole.tokens).first(n)));
                EXPECT_TRUE(
                    std::ranges::equal(chain.confidences, std::span(whole.confidences).first(n)));
            }
        }
    }
}

TEST(StoppedChains, CountWhatWasDraftedBefore) {
    KNAP_SKIP_WITHOUT_STRIPS();
    ChainRig rig(tiny_model("small-llama", "Q4_0"));
    MarginalRule marginal{
        .mean_acceptance = 1, .tokens_per_ms = 1, .draft_ms = 0.5, .verify_ms = 0.05};
    marginal.acceptance.fill(0.9);  // 0.9 ^ n > 0.55 for n <= 5
    StopState stop(StopRule{.n_max = 100, .marginal = marginal});
    EXPECT_EQ(rig.run({.token = 5, .n_steps = kSteps, .stop = &stop}).tokens.size(), 6u);
    stop.goes_on(0.5f, false);
    stop.goes_on(0.5f, false);
    EXPECT_EQ(rig.run({.token = 5, .n_steps = kSteps, .stop = &stop}).tokens.size(), 4u);
}

TEST(StoppedChains, LeaveTheDeviceReady) {
    KNAP_SKIP_WITHOUT_STRIPS();
    ChainRig rig(model_of_many_tokens());
    const std::vector<float> before = rig.step(9, 0);
    const Chain whole = rig.run({.token = 5, .n_steps = kSteps});
    const StopState stop(StopRule{.n_max = 100, .exit_confidence = 0.999f});
    for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(rig.run({.token = 5, .n_steps = kSteps, .stop = &stop}).tokens.size(), 1u);
    }
    EXPECT_EQ(rig.run({.token = 5, .n_steps = kSteps}).tokens, whole.tokens);
    EXPECT_EQ(rig.step(9, 0), before);
}

TEST(StoppedChains, CaptureTheirOwnRows) {
    KNAP_SKIP_WITHOUT_STRIPS();
    ChainRig rig(tiny_model("small-llama", "Q4_0"));
    const std::vector<int> captures{0, 3, 8};
    const Chain whole = rig.run({.token = 5, .n_steps = 6, .captures = captures});
    const StopState stop(StopRule{.n_max = 4});
    const Chain chain = rig.run({.token = 5, .n_steps = 6, .captures = captures, .stop = &stop});
    ASSERT_EQ(chain.tokens.size(), 4u);
    const auto n_embd = static_cast<std::size_t>(rig.config().n_embd);
    for (std::size_t i = 0; i < captures.size(); ++i) {
        EXPECT_TRUE(
            std::ranges::equal(chain.captures[i], std::span(whole.captures[i]).first(4 * n_embd)));
    }
}

// A guess saves steps and changes nothing: neither choices nor confidences nor captured streams.
TEST(GuessedChains, AreTheSameAsWithoutTheGuess) {
    KNAP_SKIP_WITHOUT_STRIPS();
    ChainRig rig(tiny_model("small-llama", "Q4_0"));
    const std::vector<int> captures{1, 8};
    ModulePlan plan(rig.config().n_layers);
    plan.set(1, Module::mlp, Level::skip);
    for (const float temperature : {0.0f, 0.9f}) {
        const DrawRule draw = rule_of({.temperature = temperature, .seed = 6}, rig.config());
        ChainRequest request{
            .token = 5, .plan = &plan, .n_steps = kSteps, .captures = captures, .draw = draw};
        const Chain whole = rig.run(request);
        const StopState stop(
            StopRule{.n_max = 100, .exit_confidence = whole.confidences[9] * 1.001f});
        for (const StopState* rule : {static_cast<const StopState*>(nullptr), &stop}) {
            request.stop = rule;
            request.guess = {};
            const Chain expected = rig.run(request);
            for (std::size_t n_guessed = 1; n_guessed < kSteps; n_guessed += 2) {
                for (std::size_t wrong = 0; wrong <= n_guessed; ++wrong) {
                    std::vector<Token> guess(
                        whole.tokens.begin(),
                        whole.tokens.begin() + static_cast<std::ptrdiff_t>(n_guessed));
                    if (wrong < n_guessed) {
                        guess[wrong] = (guess[wrong] + 1) % rig.config().n_vocab;
                    }
                    request.guess = guess;
                    const Chain guessed = rig.run(request);
                    EXPECT_EQ(guessed.tokens, expected.tokens) << n_guessed << ", " << wrong;
                    EXPECT_EQ(guessed.confidences, expected.confidences);
                    EXPECT_EQ(guessed.captures, expected.captures);
                }
            }
        }
    }
}

TEST(Chains, OfOneStepAndOfManyAreAlike) {
    KNAP_SKIP_WITHOUT_STRIPS();
    ChainRig rig(tiny_model("small-llama", "Q4_0"));
    const DrawRule draw = rule_of({.temperature = 1, .seed = 8}, rig.config());
    const Chain whole = rig.run({.token = 5, .n_steps = kSteps, .draw = draw});
    for (const int n_steps : {1, 2, 7}) {
        const Chain chain = rig.run({.token = 5, .n_steps = n_steps, .draw = draw});
        EXPECT_TRUE(std::ranges::equal(
            chain.tokens, std::span(whole.tokens).first(static_cast<std::size_t>(n_steps))));
    }
}

TEST(Chains, CanBeCancelled) {
    KNAP_SKIP_WITHOUT_STRIPS();
    ChainRig rig(tiny_model("small-llama", "Q4_0"));
    const std::function<bool()> is_cancelled = [] { return true; };
    rig.forward().set_cancel(&is_cancelled);
    EXPECT_FALSE(
        rig.forward().run_chain({.token = 5, .first_row = kContext, .n_steps = 3}).is_complete);
    rig.forward().set_cancel(nullptr);
    EXPECT_EQ(rig.run({.token = 5, .n_steps = 3}).tokens.size(), 3u);
}

}  // namespace
}  // namespace knap::test::cuda_chain_gpu_test
