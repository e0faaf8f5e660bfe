// How accurate is the cost model? Measures a profile, fits the model to it, and compares its
// predictions with the times of random passes: draft steps with skips and windows, passes of
// several rows with such plans, and verifications by the whole model.
//
//     cost_bench MODEL [THREADS] [PASSES]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bench_main.h"
#include "forward/plan_cost.h"
#include "forward/plan_text.h"
#include "measure.h"
#include "model/layer_classes.h"
#include "model_rig.h"
#include "search/cost/cost_model.h"
#include "search/cost/profile.h"
#include "tools/measure/statistics.h"

namespace knap::bench {
namespace {

constexpr int kRounds = 5;
constexpr int kPasses = 40;  // per kind
constexpr int kMaxRows = 16;
constexpr int kShortestContext = 64;

// Generates random passes.
class PassGenerator {
  public:
    PassGenerator(int n_layers, int max_context) : n_layers_(n_layers), max_context_(max_context) {}

    // Skips some modules, narrows some attentions to a window, or both.
    ModulePlan plan() {
        ModulePlan plan(n_layers_);
        const double skipped = chance(0.5) ? uniform(0, 0.8) : 0;
        const double windowed = chance(0.7) ? uniform(0, 1) : 0;
        const int recent = log_uniform(32, 2048);
        for (int layer = 0; layer < n_layers_; ++layer) {
            if (chance(windowed)) {
                plan.set(layer, Module::attention, Level::windowed(16, recent));
            }
            for (const Module module : {Module::attention, Module::mlp}) {
                if (chance(skipped)) {
                    plan.set(layer, module, Level::skip);
                }
            }
        }
        return plan;
    }

    Probe draft_step() { return planned(1); }
    Probe draft_pass() { return planned(rows(2)); }
    Probe verification() {
        return {.plan = ModulePlan(n_layers_), .n_context = context(), .n_rows = rows(1)};
    }

  private:
    double uniform(double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(engine_);
    }
    bool chance(double p) { return uniform(0, 1) < p; }
    int log_uniform(int low, int high) {
        return static_cast<int>(std::exp(uniform(std::log(low), std::log(high))));
    }
    int rows(int least) { return std::uniform_int_distribution<int>(least, kMaxRows)(engine_); }
    int context() { return log_uniform(kShortestContext, max_context_); }
    Probe planned(int n_rows) {
        const int n_context = context();
        return {.plan = canonical(plan(), n_context), .n_context = n_context, .n_rows = n_rows};
    }

    int n_layers_;
    int max_context_;
    std::mt19937 engine_{7};
};

struct PricedPass {
    Probe probe;
    double predicted_ms;
    double measured_ms;

    double error() const { return std::abs(predicted_ms / measured_ms - 1); }
};

double correlation(const std::vector<PricedPass>& passes) {
    std::vector<double> predicted;
    std::vector<double> measured;
    for (const PricedPass& pass : passes) {
        predicted.push_back(pass.predicted_ms);
        measured.push_back(pass.measured_ms);
    }
    return pearson(predicted, measured);
}

// Runs the passes once to warm up, then in turns, so that a slow moment affects all of them.
std::vector<PricedPass> price(Forward& forward,
                              const CostModel& costs,
                              const std::vector<Probe>& probes) {
    std::vector<std::vector<double>> times_ms(probes.size());
    for (int round = 0; round <= kRounds; ++round) {
        for (std::size_t i = 0; i < probes.size(); ++i) {
            const double ms = measure_pass(forward, probes[i])->ms;
            if (round > 0) {
                times_ms[i].push_back(ms);
            }
        }
    }
    std::vector<PricedPass> passes;
    for (std::size_t i = 0; i < probes.size(); ++i) {
        const auto& [plan, n_context, n_rows, has_head] = probes[i];
        passes.push_back({.probe = probes[i],
                          .predicted_ms = costs.pass_ms(plan, n_context, n_rows),
                          .measured_ms = median(times_ms[i])});
    }
    return passes;
}

void report(const char* kind, const std::vector<PricedPass>& passes) {
    std::vector<double> errors;
    for (const PricedPass& pass : passes) {
        errors.push_back(pass.error());
    }
    const PricedPass& worst = *std::ranges::max_element(passes, {}, &PricedPass::error);
    std::printf(
        "%-30s %8zu %9.1f %% %9.1f %% %9.3f   measured %.2f ms, predicted %.2f: %d rows at %d, "
        "%s\n",
        kind, passes.size(), 100 * median(errors), 100 * worst.error(), correlation(passes),
        worst.measured_ms, worst.predicted_ms, worst.probe.n_rows, worst.probe.n_context,
        to_string(worst.probe.plan).c_str());
    std::fflush(stdout);
}

CostProfile measured_profile(ModelRig& rig, int max_context) {
    const std::vector<int> classes = classify_layers(*rig.weights);
    const CostProfile empty = empty_profile(
        model_cost(rig.config, *rig.weights, rig.cache.memory().saved_row_bytes()), classes);
    const Stopwatch watch;
    const auto profile =
        measure_profile(rig.forward, rig.cache, classes,
                        {.max_context = max_context, .max_rows = kMaxRows, .bytes = empty.bytes});
    std::printf("profile: %zu passes, %d times each, in %.1f s (at most 20)\n",
                profile->samples.size(), profile->samples.front().n_measured,
                watch.elapsed_ms() / 1000);
    return *profile;
}

void report_parts(const CostModel& costs, int max_context) {
    const FitQuality& quality = costs.quality();
    std::printf("fit: median error %.1f %%, worst %.1f %%\n", 100 * quality.median_error,
                100 * quality.worst_error);
    const KindTimes short_times = costs.kind_times(kShortestContext);
    const KindTimes long_times = costs.kind_times(max_context);
    std::printf("ms: fixed %.3f, head %.3f, attention %.4f at %d and %.4f at %d, MLP %.4f\n",
                costs.fixed_ms(), costs.head_ms(), short_times.attention_ms, kShortestContext,
                long_times.attention_ms, max_context, long_times.mlp_ms);
}

void run(const std::filesystem::path& path, int n_threads, int n_passes) {
    Backend backend(n_threads);
    ModelRig rig(path, backend, Kernels::automatic);
    const int max_context = std::min(kContext, rig.config.n_ctx_train);
    std::printf("%s, %d threads; medians of %d\n", path.filename().c_str(), backend.n_threads(),
                kRounds);
    const CostModel costs(measured_profile(rig, max_context));
    report_parts(costs, max_context);

    PassGenerator generator(rig.config.n_layers, max_context);
    std::printf("%-30s %8s %11s %11s %9s   %s\n", "error of the prediction", "passes", "median",
                "worst", "Pearson", "worst pass");
    const auto report_kind = [&](const char* kind, Probe (PassGenerator::*next)()) {
        std::vector<Probe> probes;
        for (int i = 0; i < n_passes; ++i) {
            probes.push_back((generator.*next)());
        }
        report(kind, price(rig.forward, costs, probes));
    };
    report_kind("draft steps (at most 10 %)", &PassGenerator::draft_step);
    report_kind("verifications (at most 10 %)", &PassGenerator::verification);
    report_kind("drafts of several rows", &PassGenerator::draft_pass);
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: cost_bench MODEL [THREADS] [PASSES]\n");
        return 2;
    }
    return knap::bench::bench_main("cost_bench", [&] {
        knap::bench::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 0,
                         argc > 3 ? std::atoi(argv[3]) : knap::bench::kPasses);
    });
}
