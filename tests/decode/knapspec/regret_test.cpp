// How far `knapspec` stays behind the best fixed way of drafting, chosen in hindsight, on simulated
// answers and machines (docs/controller.md).
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "decode/strategy.h"
#include "search/cost/probes.h"
#include "support/simulated_answer.h"
#include "support/strategy_rig.h"

namespace knap::test::regret_test {
namespace {

constexpr int kLayers = 4;
constexpr std::uint64_t kAnswers = 8;

struct Scene {
    std::string name;
    double often = 0;  // and length of the runs that the text repeats
    int n_run = 1;
    double row_price = 0.1;
    double small = 0.8;  // acceptance of a window of 64 tokens
    double large = 0.9;  // of 1,024
    double noise = 0.05;
    double profile_error = 1;  // measured times of several rows over true ones
    bool changes = false;      // windows fail in every second hundred tokens
};

struct Lengths {
    std::size_t prompt = 0;
    std::size_t answer = 0;
};

double acceptance_at(const Scene& scene, int recent) {
    const double place = std::clamp(std::log2(recent / 64.0) / 4, 0.0, 1.0);
    return scene.small + place * (scene.large - scene.small);
}

SimulatedAnswer answer_of(const Scene& scene, const Lengths& lengths, std::uint64_t seed) {
    const auto text = repetitive(lengths.prompt + lengths.answer, scene.often, scene.n_run, seed);
    const auto split = text.begin() + static_cast<std::ptrdiff_t>(lengths.prompt);
    return {
        .prompt = {text.begin(), split},
        .answer = {split, text.end()},
        .acceptance = [scene](int recent, std::size_t) { return acceptance_at(scene, recent); }};
}

struct Outcome {
    double knapspec_ms = 0;
    double best_ms = 0;
    double plain_ms = 0;
    std::string best;

    double share() const { return best_ms / knapspec_ms; }
};

class Stage {
  public:
    Stage() { rig_.trees_are_exact = true; }

    // Several answers, each by a strategy that knows nothing of the others.
    Outcome play(const Scene& scene, const Lengths& lengths) {
        machine_.machine = long_context_machine(kLayers, scene.row_price);
        machine_.noise = scene.noise;
        FakeMachine believed = machine_.machine;
        believed.weights_factor = [&](int n) {
            return 1 + scene.profile_error * scene.row_price * (n - 1);
        };
        believed.cache_factor = believed.weights_factor;
        rig_.profile = believed.profile(profile_probes(believed.layer_classes, 8192, 16));
        answers_.clear();
        for (std::uint64_t seed = 1; seed <= kAnswers; ++seed) {
            answers_.push_back(answer_of(scene, lengths, seed));
        }
        Outcome outcome;
        outcome.knapspec_ms = time({.strategy = "knapspec", .settings = {{"budget", "0"}}});
        outcome.plain_ms = time(plain_decoding());
        outcome.best = "plain";
        outcome.best_ms = outcome.plain_ms;
        const auto consider = [&](const std::string& name, const SpeculationOptions& how) {
            const double ms = time(how);
            if (ms < outcome.best_ms) {
                outcome.best_ms = ms;
                outcome.best = name;
            }
        };
        for (const int length : {3, 10}) {
            consider("lookup/" + std::to_string(length),
                     {.strategy = "lookup", .draft_max = length});
        }
        for (const char* window : {"64", "256", "1024"}) {
            for (const int length : {1, 2, 4, 7}) {
                const std::string plan = std::string("a=w16+") + window;
                consider(plan + "/" + std::to_string(length),
                         {.strategy = "static", .draft_max = length, .settings = {{"plan", plan}}});
            }
        }
        return outcome;
    }

  private:
    double time(const SpeculationOptions& how) {
        double ms = 0;
        for (const SimulatedAnswer& answer : answers_) {
            ++machine_.seed;
            ms += write_answer(*make_strategy(how, rig_.parts()), answer, machine_).ms;
        }
        machine_.seed -= answers_.size();
        return ms;
    }

    StrategyRig rig_;
    SimulatedMachine machine_;
    std::vector<SimulatedAnswer> answers_;
};

std::vector<Scene> scenes() {
    std::vector<Scene> scenes;
    for (const double price : {0.05, 0.13, 0.25}) {
        const std::vector<Scene> at_price{
            {.name = "prose"},
            {.name = "windows fail", .small = 0.2, .large = 0.4},
            {.name = "windows are good", .small = 0.93, .large = 0.96},
            {.name = "long runs", .often = 0.03, .n_run = 20, .small = 0.6, .large = 0.8},
            {.name = "short runs", .often = 0.2, .n_run = 3, .small = 0.6, .large = 0.8},
            {.name = "windows come and go", .small = 0.9, .large = 0.95, .changes = true},
            {.name = "runs that mislead", .often = 0.5, .n_run = 1},
            {.name = "rows look dear", .often = 0.03, .n_run = 20, .profile_error = 2},
            {.name = "rows look cheap",
             .often = 0.1,
             .n_run = 3,
             .small = 0.5,
             .large = 0.7,
             .profile_error = 0.3},
        };
        for (Scene scene : at_price) {
            scene.row_price = price;
            scenes.push_back(scene);
        }
    }
    return scenes;
}

std::string describe(const Scene& scene, const Lengths& lengths, const Outcome& outcome) {
    return concat(scene.name, ", rows at ", scene.row_price, ", ", lengths.answer, " tokens after ",
                  lengths.prompt, ": ", outcome.share(), " of the speed of ", outcome.best, ", ",
                  outcome.plain_ms / outcome.knapspec_ms, " of plain decoding");
}

TEST(Regret, IsSmallOnEverySimulatedAnswer) {
    Stage stage;
    double logs = 0;
    double worst = 2;
    int n = 0;
    for (const Scene& scene : scenes()) {
        for (const std::size_t n_prompt : {60, 1000, 6000}) {
            for (const std::size_t n_answer : {100, 400}) {
                const Lengths lengths{.prompt = n_prompt, .answer = n_answer};
                const Outcome outcome = stage.play(scene, lengths);
                EXPECT_GT(outcome.share(), 0.92) << describe(scene, lengths, outcome);
                EXPECT_GT(outcome.plain_ms / outcome.knapspec_ms, 0.94)
                    << describe(scene, lengths, outcome);
                logs += std::log(outcome.share());
                worst = std::min(worst, outcome.share());
                ++n;
            }
        }
    }
    const double mean = std::exp(logs / n);
    EXPECT_GT(mean, 1) << "over the best fixed way of each cell";
    RecordProperty("mean", std::to_string(mean));
    RecordProperty("worst", std::to_string(worst));
}

}  // namespace
}  // namespace knap::test::regret_test
