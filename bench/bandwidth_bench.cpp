// How much of what the machine's memory gives does a step of plain decoding take? A step of one row
// reads every weight once; in turn with a number of steps, as many threads read memory that no
// cache holds and do nothing else.
//
//     bandwidth_bench MODEL... [--threads N]
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <sys/mman.h>

#include "bench_main.h"
#include "device/cpu_topology.h"
#include "graph/plan_cost.h"
#include "measure.h"
#include "model_rig.h"

namespace knap::bench {
namespace {

constexpr int kRounds = 5;
constexpr int kReads = 5;  // of a round
constexpr int kWarmUp = 5;
constexpr int kSteps = 40;
constexpr int kDepth = 16;
// Many times the largest cache. An odd number of pages: pieces that are powers of two apart would
// meet in the same banks of memory.
constexpr std::size_t kPage = std::size_t{1} << 21;
constexpr std::size_t kBytes = 509 * kPage;

// Reads all of a span, as fast as one thread can: from two places at once, which keeps more
// requests under way than one does.
std::uint64_t read_all(std::span<const std::uint64_t> words) {
    constexpr std::size_t kLanes = 32;  // independent sums: additions wait for nobody
    const std::span<const std::uint64_t> halves[] = {words.first(words.size() / 2),
                                                     words.last(words.size() / 2)};
    std::uint64_t sums[kLanes] = {};
    for (std::size_t i = 0; i + kLanes <= words.size() / 2; i += kLanes) {
        for (const std::span<const std::uint64_t> half : halves) {
            for (std::size_t lane = 0; lane < kLanes; ++lane) {
                sums[lane] += half[i + lane];
            }
        }
    }
    return std::accumulate(std::begin(sums), std::end(sums), std::uint64_t{0});
}

// Memory in large pages, as weights lie, that several threads read, each a piece of its own.
class Reader {
  public:
    explicit Reader(int n_threads)
        : memory_(static_cast<std::uint64_t*>(std::aligned_alloc(kPage, kBytes)), std::free),
          sums_(static_cast<std::size_t>(n_threads)) {
        if (memory_ == nullptr) {
            fail("memory: expected ", kBytes, " bytes to read, found less");
        }
        madvise(memory_.get(), kBytes, MADV_HUGEPAGE);
        std::memset(memory_.get(), 1, kBytes);
    }

    double gb_per_second() {
        const std::span words(memory_.get(), kBytes / sizeof(std::uint64_t));
        const std::size_t share = words.size() / sums_.size();
        const Stopwatch watch;
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < sums_.size(); ++i) {
            threads.emplace_back(
                [=, this] { sums_[i] = read_all(words.subspan(i * share, share)); });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        return static_cast<double>(kBytes) / watch.elapsed_ms() * 1e-6;
    }

  private:
    std::unique_ptr<std::uint64_t, void (*)(void*)> memory_;
    std::vector<std::uint64_t> sums_;  // kept, so that nobody leaves out the reading
};

std::vector<double> time_steps(const std::filesystem::path& path, int n_threads) {
    Backend backend(n_threads);
    ModelRig rig(path, backend, Kernels::automatic);
    rig.fill(kDepth);
    const PlanCost cost = plan_cost(model_cost(rig.config, *rig.weights, rig.cache.options()),
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

// In turn, and not at once: the threads that compute wait for work by spinning.
void run(const std::filesystem::path& path, int n_threads) {
    Reader reader(n_threads);
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
        "%s, %d threads, medians: a step reads %.1f GB/s (+-%.0f%%), memory gives %.1f GB/s "
        "(+-%.0f%%): %.2f of it\n",
        path.filename().c_str(), n_threads, median(steps), 100 * spread(steps), median(memory),
        100 * spread(memory), median(steps) / median(memory));
    std::fflush(stdout);
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    CLI::App app("How much of the memory's bandwidth a step of plain decoding takes",
                 "bandwidth_bench");
    std::vector<std::string> models;
    int n_threads = knap::default_thread_count();
    app.add_option("MODEL", models, "models in GGUF format")->required();
    app.add_option("--threads", n_threads, "by default the physical cores")
        ->check(CLI::Range(1, 1024));
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("bandwidth_bench", [&] {
        for (const std::string& model : models) {
            knap::bench::run(model, n_threads);
        }
    });
}
