#include "support/random_cases.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "forward/plan_text.h"

namespace knap::test {
namespace {

int below(std::mt19937& random, int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
}

template <typename Value, std::size_t Size>
Value one_of(std::mt19937& random, const std::array<Value, Size>& values) {
    return values[static_cast<std::size_t>(below(random, static_cast<int>(Size)))];
}

Level random_level(std::mt19937& random, Module module) {
    constexpr std::array kWindows{Level::windowed(0, 16), Level::windowed(4, 60),
                                  Level::windowed(16, 0), Level::windowed(16, 256)};
    const int kind = below(random, module == Module::attention ? 4 : 3);
    if (module == Module::mlp && kind == 1) {  // the whole MLP where layers have no experts
        return Level::with_experts(1);
    }
    return kind == 3 ? one_of(random, kWindows) : kind == 2 ? Level::skip : Level::full;
}

StopRule random_stop(std::mt19937& random) {
    StopRule stop{.n_max = below(random, 17)};
    switch (below(random, 4)) {
        case 0:
            stop.exit_confidence = 0.004f;  // about the probability of a tiny model's choices
            break;
        case 1: {
            MarginalRule rule{
                .mean_acceptance = 0.6, .tokens_per_ms = 1.0, .draft_ms = 0.2, .verify_ms = 0.1};
            rule.acceptance.fill(0.8);
            stop.marginal = rule;
            break;
        }
        default:
            break;
    }
    return stop;
}

SamplingOptions random_sampling(std::mt19937& random, unsigned seed) {
    SamplingOptions sampling{.seed = seed};
    if (below(random, 2) == 1) {
        sampling.temperature = 0.8f;
        sampling.top_k = below(random, 2) == 1 ? 8 : 0;
    }
    if (below(random, 3) == 0) {
        sampling.repeat_penalty = 1.3f;
        sampling.frequency_penalty = 0.2f;
        sampling.logit_bias = {{5, 2.0f}, {9, -1.0f}};
    }
    return sampling;
}

}  // namespace

ModulePlan random_plan(std::mt19937& random, int n_layers) {
    ModulePlan plan(n_layers);
    const int kind = below(random, 8);
    const int exit_layer = kind == 0 ? below(random, n_layers + 1) : n_layers;
    // Few changes keep the draft close to the model, so that some of it is accepted.
    const int one_in = kind < 4 ? 4 : 1;
    for (int layer = 0; layer < n_layers; ++layer) {
        for (const Module module : {Module::attention, Module::mlp}) {
            if (layer >= exit_layer || kind == 1) {
                plan.set(layer, module, Level::skip);
            } else if (kind > 2 && below(random, one_in) == 0) {
                plan.set(layer, module, random_level(random, module));
            }
        }
    }
    return plan;
}

RandomCase::RandomCase(unsigned seed, const ModelConfig& config) : plan(config.n_layers) {
    constexpr std::array kPromptLengths{1, 2, 40, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300};
    std::mt19937 random(seed);
    plan = random_plan(random, config.n_layers);
    stop = random_stop(random);
    end_of_text = below(random, config.n_vocab);
    plan.set_head(below(random, 3) == 0 ? HeadLevel::reduced : HeadLevel::full);
    one_wrong_in = one_of(random, std::array{0, 1, 3, 9, 1000});
    decode = {
        .prompt = random_tokens(one_of(random, kPromptLengths), config.n_vocab, seed),
        .n_tokens = 12 + below(random, 20),
        .sampling = random_sampling(random, seed),
        .rule = below(random, 4) == 0 ? AcceptanceRule::equality : AcceptanceRule::shared_noise,
    };
}

Propose RandomCase::propose(std::span<const Token> text) const {
    std::mt19937 random(static_cast<unsigned>(decode.prompt.size()));
    return [this, text, random, guess = std::vector<Token>()](std::span<const Token> history,
                                                              int n_room) mutable {
        DraftWithPlan how{.plan = &plan, .stop = stop, .width = width};
        how.stop.n_max = std::min(stop.n_max, n_room);
        if (one_wrong_in > 0) {
            const auto rest = text.subspan(history.size() - decode.prompt.size());
            guess.assign(rest.begin(), rest.end());
            for (Token& token : guess) {
                token += below(random, one_wrong_in) == 0 ? (token > 0 ? -1 : 1) : 0;
            }
            how.guess = guess;
        }
        return Proposal{.draft = how};
    };
}

std::string RandomCase::describe() const {
    return concat(to_string(plan), ", at most ", stop.n_max, " tokens, width ", width,
                  ", guesses wrong 1 in ", one_wrong_in, ", after ", decode.prompt.size(),
                  " tokens, temperature ", decode.sampling.temperature);
}

}  // namespace knap::test
