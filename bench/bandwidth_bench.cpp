// How much of what the machine's memory gives does a step of plain decoding take? A step of one row
// reads every weight once; beside it, in turn, as many threads read memory that no cache holds and
// do nothing else.
//
//     bandwidth_bench MODEL... [--threads N]
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench_main.h"
#include "device/host_memory.h"
#include "graph/plan_cost.h"
#include "measure.h"
#include "model_rig.h"

namespace knap::bench {
namespace {

constexpr int kRounds = 21;
constexpr int kDepth = 16;
constexpr int kSteps = 8;                             // in a row, as they are in decoding
constexpr std::size_t kBytes = std::size_t{1} << 30;  // many times the largest cache

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
    explicit Reader(const Backend& backend)
        : memory_(backend, kBytes, HostMemory::Pages::huge, "what is read"),
          sums_(static_cast<std::size_t>(backend.n_threads())) {
        std::memset(memory_.data(), 1, memory_.size());
    }

    void read() {
        const std::span words(reinterpret_cast<const std::uint64_t*>(memory_.data()),
                              kBytes / sizeof(std::uint64_t));
        const std::size_t share = words.size() / sums_.size();
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < sums_.size(); ++i) {
            threads.emplace_back(
                [=, this] { sums_[i] = read_all(words.subspan(i * share, share)); });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    }

  private:
    HostMemory memory_;
    std::vector<std::uint64_t> sums_;  // kept, so that nobody leaves out the reading
};

void run(const std::filesystem::path& path, int n_threads) {
    Backend backend(n_threads);
    ModelRig rig(path, backend, Kernels::automatic);
    rig.fill(kDepth);
    Reader reader(backend);
    const Token token = 0;
    const int row = 0;
    std::vector<Contestant> contestants{
        {"steps",
         [&] {
             for (int step = 0; step < kSteps; ++step) {
                 rig.forward.run({.tokens = std::span(&token, 1),
                                  .first_row = kDepth,
                                  .logit_rows = std::span(&row, 1)});
             }
         }},
        {"memory", [&] { reader.read(); }},
    };
    alternate(contestants, kRounds);
    const ModulePlan whole(rig.config.n_layers);
    const PlanCost cost = plan_cost(model_cost(rig.config, *rig.weights, rig.cache.options()),
                                    whole, kDepth, /*n_rows=*/1);
    const auto gb_per_second = [](double bytes, const Contestant& contestant) {
        return bytes / median(contestant.times_ms) * 1e-6;
    };
    const double step = gb_per_second(
        static_cast<double>(kSteps * (cost.weight_bytes + cost.cache_bytes)), contestants[0]);
    const double memory = gb_per_second(static_cast<double>(kBytes), contestants[1]);
    std::printf(
        "%s, %d threads, medians of %d: a step reads %.1f GB/s (+-%.0f%%), memory gives %.1f GB/s "
        "(+-%.0f%%): %.2f of it\n",
        path.filename().c_str(), backend.n_threads(), kRounds, step,
        100 * spread(contestants[0].times_ms), memory, 100 * spread(contestants[1].times_ms),
        step / memory);
    std::fflush(stdout);
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    CLI::App app("How much of the memory's bandwidth a step of plain decoding takes",
                 "bandwidth_bench");
    std::vector<std::string> models;
    int n_threads = 0;
    app.add_option("MODEL", models, "models in GGUF format")->required();
    app.add_option("--threads", n_threads, "0: the physical cores")->check(CLI::Range(0, 1024));
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("bandwidth_bench", [&] {
        for (const std::string& model : models) {
            knap::bench::run(model, n_threads);
        }
    });
}
