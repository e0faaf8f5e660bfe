// How far `knapspec` stays behind the best fixed way of drafting, chosen in hindsight, on simulated
// answers and machines (docs/controller.md).
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "decode/learned/learned.h"
#include "decode/strategy.h"
#include "forward/plan_text.h"
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
    bool is_sampled = false;
};

// What a strategy knows when it begins.
enum class Start {
    profile,       // of the machine
    nothing,       // it measures what passes cost, within its budget
    right_memory,  // a profile, and what answers of this kind have taught
    wrong_memory,  // a profile, and what answers of the opposite kind have taught
};

struct Lengths {
    std::size_t prompt = 0;
    std::size_t answer = 0;
};

constexpr int kChangesAfter = 100;
constexpr double kFailing = 0.2;

double acceptance_at(const Scene& scene, int recent, std::size_t position) {
    if (scene.changes && position / kChangesAfter % 2 == 1) {
        return kFailing;
    }
    const double place = std::clamp(std::log2(recent / 64.0) / 4, 0.0, 1.0);
    return scene.small + place * (scene.large - scene.small);
}

// Copies and windows are good where they were bad, and the other way round.
Scene opposite(Scene scene) {
    const bool has_copies = scene.often > 0 && scene.n_run > 1;
    scene.often = has_copies ? 0.5 : 0.03;
    scene.n_run = has_copies ? 1 : 20;
    const bool has_windows = scene.small > 0.5;
    scene.small = has_windows ? 0.2 : 0.93;
    scene.large = has_windows ? 0.4 : 0.96;
    return scene;
}

// Draws repeat and agree less often than the most probable tokens do.
Scene sampled(Scene scene) {
    scene.often *= 0.7;
    scene.small *= 0.9;
    scene.large *= 0.9;
    scene.is_sampled = true;
    return scene;
}

SimulatedAnswer answer_of(const Scene& scene, const Lengths& lengths, std::uint64_t seed) {
    const auto text = repetitive(lengths.prompt + lengths.answer, scene.often, scene.n_run, seed);
    const auto split = text.begin() + static_cast<std::ptrdiff_t>(lengths.prompt);
    return {.prompt = {text.begin(), split},
            .answer = {split, text.end()},
            .acceptance =
                [scene](int recent, std::size_t position) {
                    return acceptance_at(scene, recent, position);
                },
            .is_sampled = scene.is_sampled};
}

struct Outcome {
    double knapspec_ms = 0;
    double best_ms = 0;
    double plain_ms = 0;
    std::string best;

    double share() const { return best_ms / knapspec_ms; }
    double over_plain() const { return plain_ms / knapspec_ms; }
};

// What the strategy itself takes by the clock is nothing beside such steps.
FakeMachine slow_machine(double row_price) {
    FakeMachine machine = long_context_machine(kLayers, row_price);
    for (double* part : {&machine.fixed_ms, &machine.head_ms, &machine.cache_row_ms,
                         &machine.attention_ms[0], &machine.mlp_ms[0]}) {
        *part *= 1e5;
    }
    return machine;
}

class Stage {
  public:
    // Replays are cancelled: nobody knows what they would find.
    Stage() : rig_(tiny_model(), {.capacity = 8192}) {
        rig_.trees_are_exact = true;
        rig_.model.backend.set_abort([] { return true; });
    }

    // Several answers, each by a strategy that knows nothing of the others.
    Outcome play(const Scene& scene, const Lengths& lengths, Start start) {
        machine_.machine = slow_machine(scene.row_price);
        machine_.noise = scene.noise;
        answers_.clear();
        for (std::uint64_t seed = 1; seed <= kAnswers; ++seed) {
            answers_.push_back(answer_of(scene, lengths, seed));
        }
        Outcome outcome;
        outcome.knapspec_ms = time_knapspec(scene, lengths, start);
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
    CostProfile profile_of(const Scene& scene) const {
        FakeMachine believed = machine_.machine;
        believed.weights_factor = [&](int n) {
            return 1 + scene.profile_error * scene.row_price * (n - 1);
        };
        believed.cache_factor = believed.weights_factor;
        return believed.profile(profile_probes(believed.layer_classes, 8192, 16));
    }

    double time_knapspec(const Scene& scene, const Lengths& lengths, Start start) {
        const CostProfile nothing{.layer_classes = machine_.machine.layer_classes};
        rig_.profile = start == Start::nothing ? nothing : profile_of(scene);
        if (start == Start::right_memory) {
            known_ = memory_of(scene, lengths);
        } else if (start == Start::wrong_memory) {
            known_ = memory_of(opposite(scene), lengths);
        }
        has_memory_ = start == Start::right_memory || start == Start::wrong_memory;
        measured_ms_ = 0;
        const double writing_ms =
            start == Start::nothing
                ? time({.strategy = "knapspec", .settings = {{"knapsack", "never"}}})
                : time({.strategy = "knapspec", .settings = {{"budget", "0"}}});
        has_memory_ = false;
        return writing_ms + measured_ms_;
    }

    // What other answers of such a scene teach about copies, and many drafts about windows.
    Learned memory_of(const Scene& scene, const Lengths& lengths) {
        constexpr std::uint64_t kOthers = 100;  // seeds
        constexpr double kDrafts = 200;
        Learned memory;
        StrategyParts parts = rig_.parts();
        parts.notes = &memory;
        for (std::uint64_t seed = kOthers; seed < kOthers + 4; ++seed) {
            write_answer(
                *make_strategy({.strategy = "knapspec", .settings = {{"budget", "0"}}}, parts),
                answer_of(scene, lengths, seed), machine_);
        }
        memory.costs.clear();
        const auto n_text = static_cast<int>(lengths.prompt + lengths.answer);
        for (const int recent : {64, 128, 256, 512, 1024}) {
            const auto plan = uniform_window_plan(kLayers, {.sinks = 16, .recent = recent});
            for (int bucket = 0; bucket <= context_bucket(n_text); ++bucket) {
                memory.add_drafts(
                    {.name = to_string(plan), .bucket = bucket, .is_sampled = scene.is_sampled},
                    {.right = kDrafts * acceptance_at(scene, recent, 0), .all = kDrafts});
            }
        }
        return memory;
    }

    double time(const SpeculationOptions& how) {
        StrategyParts parts = rig_.parts();
        parts.known = has_memory_ ? &known_ : nullptr;
        parts.measure = [this](const Probe& probe) {
            const double ms = machine_.machine.ms(probe);
            measured_ms_ += ms;
            return PassTime{.ms = ms};
        };
        double ms = 0;
        for (const SimulatedAnswer& answer : answers_) {
            ++machine_.seed;
            ms += write_answer(*make_strategy(how, parts), answer, machine_).ms;
        }
        machine_.seed -= answers_.size();
        return ms;
    }

    StrategyRig rig_;
    SimulatedMachine machine_;
    std::vector<SimulatedAnswer> answers_;
    Learned known_;
    bool has_memory_ = false;
    double measured_ms_ = 0;  // of passes that the strategy timed
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
                  outcome.over_plain(), " of plain decoding");
}

// Of several cells.
class Summary {
  public:
    void add(const Outcome& outcome) {
        logs_ += std::log(outcome.share());
        worst_ = std::min(worst_, outcome.share());
        least_ = std::min(least_, outcome.over_plain());
        ++n_;
    }
    double mean() const { return std::exp(logs_ / n_); }
    double worst() const { return worst_; }
    std::string text() const {
        return concat("mean ", mean(), ", worst ", worst_, ", ", least_, " of plain decoding");
    }

  private:
    double logs_ = 0;
    double worst_ = 10;
    double least_ = 10;
    int n_ = 0;
};

// The least that a strategy reaches which begins like this: the mean and the worst of the cells, of
// the best fixed way, and the worst of plain decoding.
struct Bounds {
    std::string name;
    Start start = Start::profile;
    bool is_sampled = false;
    double mean = 0;
    double worst = 0;
    double of_plain = 0;
};

void PrintTo(const Bounds& bounds, std::ostream* out) {
    *out << bounds.name;
}

class Regret : public ::testing::TestWithParam<Bounds> {};

TEST_P(Regret, IsSmallOnEverySimulatedAnswer) {
    const Bounds& bounds = GetParam();
    Stage stage;
    Summary all;
    std::map<std::string, Summary> by_scene;
    for (const Scene& greedy : scenes()) {
        const Scene scene = bounds.is_sampled ? sampled(greedy) : greedy;
        for (const std::size_t n_prompt : {60, 1000, 6000}) {
            for (const std::size_t n_answer : {100, 400}) {
                const Lengths lengths{.prompt = n_prompt, .answer = n_answer};
                const Outcome outcome = stage.play(scene, lengths, bounds.start);
                EXPECT_GT(outcome.share(), bounds.worst) << describe(scene, lengths, outcome);
                EXPECT_GT(outcome.over_plain(), bounds.of_plain)
                    << describe(scene, lengths, outcome);
                all.add(outcome);
                by_scene[scene.name].add(outcome);
            }
        }
    }
    EXPECT_GT(all.mean(), bounds.mean) << "over the best fixed way of each cell";
    RecordProperty("all", all.text());
    for (const auto& [name, summary] : by_scene) {
        RecordProperty(name, summary.text());
    }
}

INSTANTIATE_TEST_SUITE_P(
    With,
    Regret,
    ::testing::Values(
        Bounds{.name = "profile", .mean = 1.03, .worst = 0.935, .of_plain = 0.965},
        Bounds{.name = "right_memory",
               .start = Start::right_memory,
               .mean = 1.035,
               .worst = 0.945,
               .of_plain = 0.99},
        Bounds{.name = "wrong_memory",
               .start = Start::wrong_memory,
               .mean = 0.96,
               .worst = 0.555,
               .of_plain = 0.935},
        Bounds{.name = "nothing",
               .start = Start::nothing,
               .mean = 1.005,
               .worst = 0.8,
               .of_plain = 0.965},
        Bounds{
            .name = "samples", .is_sampled = true, .mean = 1.02, .worst = 0.915, .of_plain = 0.97}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace knap::test::regret_test
