// What does a phase cost beside its work, with N threads? A step of plain decoding has five phases
// a layer, so with many threads and a small model this decides how fast it can be.
//
// Four kinds of phases, each in jobs of 150: without work; with an item for each thread; with two
// items more than threads, as in the output products of the default model at 16 threads; and with
// an item for each thread that reads what all have written in the phase before, as the input of a
// product is.
//
//     phase_bench [--threads N,...] [--item-us T]
#include <algorithm>
#include <cstdio>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/rounding.h"
#include "bench_main.h"
#include "device/cpu_topology.h"
#include "device/thread_team.h"
#include "measure.h"

namespace knap::bench {
namespace {

constexpr int kPhases = 150;
constexpr int kJobs = 40;
constexpr int kWarmUp = 10;
constexpr std::size_t kExchanged = 576;  // floats: a row of the default model's stream

// Arithmetic that takes a fixed time.
class Work {
  public:
    explicit Work(double item_us) {
        constexpr int kTrialSteps = 1 << 13;
        constexpr int kTrials = 100;
        n_steps_ = kTrialSteps;
        double fastest_us = 1e9;
        for (int i = 0; i < kTrials; ++i) {
            const Stopwatch watch;
            (*this)();
            fastest_us = std::min(fastest_us, watch.elapsed_ms() * 1000);
        }
        n_steps_ = static_cast<int>(kTrialSteps * item_us / fastest_us);
    }

    void operator()() const {
        volatile float x = 1.0f;  // on the thread's stack
        for (int i = 0; i < n_steps_; ++i) {
            x = x * 0.999f + 0.001f;
        }
    }

  private:
    int n_steps_ = 0;
};

// The time of one phase in microseconds: the median and the spread over jobs.
struct PhaseTime {
    double us = 0;
    double spread = 0;
};

template <typename Item>
PhaseTime time_phases(ThreadTeam& team, int n_items, Item item) {
    std::vector<double> times_us;
    for (int job = 0; job < kWarmUp + kJobs; ++job) {
        const Stopwatch watch;
        team.run([&](TeamMember& member) {
            for (int phase = 0; phase < kPhases; ++phase) {
                member.share(n_items, [&](int i) { item(phase, i); });
            }
        });
        if (job >= kWarmUp) {
            times_us.push_back(watch.elapsed_ms() * 1000 / kPhases);
        }
    }
    return {median(times_us), spread(times_us)};
}

PhaseTime time_exchange(ThreadTeam& team) {
    const auto n_parts = static_cast<std::size_t>(team.n_threads());
    std::vector<float> numbers[2]{std::vector<float>(kExchanged, 1.0f),
                                  std::vector<float>(kExchanged, 1.0f)};
    return time_phases(team, team.n_threads(), [&](int phase, int i) {
        const std::vector<float>& from = numbers[phase % 2];
        std::vector<float>& to = numbers[(phase + 1) % 2];
        float sum = 0;
        for (const float x : from) {
            sum += x;
        }
        const auto part = static_cast<std::size_t>(i);
        for (std::size_t at = kExchanged * part / n_parts; at < kExchanged * (part + 1) / n_parts;
             ++at) {
            to[at] = sum / static_cast<float>(kExchanged);
        }
    });
}

void compare(int n_threads, double item_us) {
    ThreadTeam team(n_threads);
    const Work work(item_us);
    const PhaseTime empty = time_phases(team, n_threads, [](int, int) {});
    const PhaseTime even = time_phases(team, n_threads, [&](int, int) { work(); });
    const PhaseTime uneven = time_phases(team, n_threads + 2, [&](int, int) { work(); });
    const PhaseTime exchange = time_exchange(team);
    const double longest = item_us * steps_for(n_threads + 2, n_threads);
    std::printf("%7d | %6.2f (%2.0f%%) | %6.2f (%2.0f%%) | %6.2f (%2.0f%%) | %6.2f (%2.0f%%)\n",
                n_threads, empty.us, 100 * empty.spread, even.us - item_us, 100 * even.spread,
                uneven.us - longest, 100 * uneven.spread, exchange.us, 100 * exchange.spread);
    std::fflush(stdout);
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    CLI::App app("What a phase of a team of threads costs beside its work", "phase_bench");
    std::vector<int> threads{knap::default_thread_count()};
    double item_us = 3;
    app.add_option("--threads", threads, "numbers of threads (default: the physical cores)")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024));
    app.add_option("--item-us", item_us, "microseconds of work in an item")
        ->check(CLI::Range(0.1, 1000.0))
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("phase_bench", [&] {
        std::printf("us a phase beside its work, median of %d jobs (spread of the phase)\n",
                    knap::bench::kJobs);
        std::printf("threads | no work       | one item each | two more      | exchange\n");
        for (const int n_threads : threads) {
            knap::bench::compare(n_threads, item_us);
        }
    });
}
