// How much of the memory bandwidth does a step of plain decoding use? A step reads every weight
// once. In turns with runs of steps, the same number of threads only reads memory that
// no CPU cache holds.
//
//     bandwidth_bench MODEL... [--threads N]
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench_main.h"
#include "device/cpu_topology.h"
#include "forward/plan_cost.h"
#include "measure.h"
#include "model_rig.h"
#include "tools/profile/memory_reader.h"

namespace knap::bench {
namespace {

constexpr int kRounds = 5;
constexpr int kReads = 5;  // per round
constexpr int kWarmUp = 5;
constexpr int kSteps = 40;
constexpr int kDepth = 16;

std::vector<double> time_steps(const std::filesystem::path& path, int n_threads) {
    Backend backend(n_threads);
    ModelRig rig(path, backend, Kernels::automatic);
    rig.fill(kDepth);
    const PlanCost cost =
        plan_cost(model_cost(rig.config, *rig.weights, rig.cache.memory().saved_row_bytes()),
                  ModulePlan(rig.config.n_layers), kDepth, /*n_rows=*/1);
    const auto n_bytes = static_cast<double>(cost.weight_bytes + cost.cache_bytes);
    const Token token = 0;
    const int row = 0;
    std::vector<double> speeds;
    for (int step = 0; step < kWarmUp + kSteps; ++step) {
        const Stopwatch watch;
        rig.forward.run({.tokens = std::span(&token, 1),
                         .first_row = kDepth,
                         .logit_rows = std::span(&row, 1)});
        if (step >= kWarmUp) {
            speeds.push_back(n_bytes / watch.elapsed_ms() * 1e-6);
        }
    }
    return speeds;
}

// In turns, not at the same time, because compute threads spin while they wait for work.
void run(const std::filesystem::path& path, int n_threads) {
    MemoryReader reader(n_threads);
    std::vector<double> memory;
    std::vector<double> steps;
    for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < kReads; ++i) {
            memory.push_back(reader.gb_per_second());
        }
        const std::vector<double> more = time_steps(path, n_threads);
        steps.insert(steps.end(), more.begin(), more.end());
    }
    std::printf(
        "%s, %d threads, medians: a step reads %.1f GB/s (+-%.0f%%), memory allows %.1f GB/s "
        "(+-%.0f%%): %.2f of it\n",
        path.filename().c_str(), n_threads, median(steps), 100 * spread(steps), median(memory),
        100 * spread(memory), median(steps) / median(memory));
    std::fflush(stdout);
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    CLI::App app("Share of the memory bandwidth that a step of plain decoding uses",
                 "bandwidth_bench");
    std::vector<std::string> models;
    int n_threads = knap::default_thread_count();
    app.add_option("MODEL", models, "models in GGUF format")->required();
    app.add_option("--threads", n_threads, "number of threads (default: the physical cores)")
        ->check(CLI::Range(1, 1024));
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("bandwidth_bench", [&] {
        for (const std::string& model : models) {
            knap::bench::run(model, n_threads);
        }
    });
}
