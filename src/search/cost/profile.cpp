#include "search/cost/profile.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "knap/types.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/involuntary_switches.h"
#include "base/quantile.h"
#include "forward/forward.h"
#include "kv/sequence.h"
#include "model/config.h"
#include "search/row_numbers.h"
#include "search/some_tokens.h"

namespace knap {

namespace {

constexpr std::size_t kFewestRounds = 3;
// Rows computed to fill the cache; the others are copies of them.
constexpr int kComputedRows = 32;

// Writes every row of the cache. Returns false when cancelled.
bool fill_rows(Forward& forward, Sequence& cache) {
    const int n_computed = std::min({kComputedRows, cache.capacity(), forward.max_rows(0)});
    const std::vector<Token> tokens = some_tokens(n_computed, forward.config().n_vocab);
    cache.truncate(0);
    if (!forward.run({.tokens = tokens}).is_complete) {
        return false;
    }
    for (int row = n_computed; row < cache.capacity(); ++row) {
        if (forward.is_cancelled()) {
            return false;
        }
        cache.copy_row(row % n_computed, row);
    }
    return true;
}

// Measures all probes in rounds.
class Measurement {
  public:
    Measurement(Forward& forward, std::vector<Probe> probes, const ProfileOptions& options)
        : forward_(forward),
          probes_(std::move(probes)),
          options_(options),
          order_(probes_.size()),
          times_(probes_.size()) {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
    }

    // Runs every probe once to warm up, then as many rounds as the time allows, at least three.
    // Returns false when cancelled.
    bool run() {
        if (!run_round()) {
            return false;
        }
        std::ranges::for_each(times_, [](std::vector<PassTime>& times) { times.clear(); });
        double round_s = 0;
        while (n_passes_ < n_needed() || elapsed_s() + round_s <= options_.seconds) {
            const double start_s = elapsed_s();
            if (!run_round()) {
                return false;
            }
            round_s = elapsed_s() - start_s;
        }
        return true;
    }

    std::vector<CostSample> samples() const {
        std::vector<CostSample> samples;
        for (std::size_t i = 0; i < probes_.size(); ++i) {
            samples.push_back(summary_of(probes_[i], times_[i]));
        }
        return samples;
    }

  private:
    // Shuffles the order, so that a probe does not always find the same data in the CPU caches.
    bool run_round() {
        std::shuffle(order_.begin(), order_.end(), random_);
        for (const std::size_t i : order_) {
            const std::optional<PassTime> time = measure_repeated(probes_[i]);
            if (!time) {
                return false;
            }
            times_[i].push_back(*time);
            ++n_passes_;
            report_progress();
        }
        return true;
    }

    // In decoding, one-row steps follow each other, so a one-row probe is timed after an untimed
    // run of itself. Directly after a pass of many rows it would find the CPU caches full of other
    // data, which costs it up to a tenth; larger passes hardly notice.
    std::optional<PassTime> measure_repeated(const Probe& probe) {
        if (probe.n_rows == 1 && !measure_pass(forward_, probe)) {
            return std::nullopt;
        }
        return measure_pass(forward_, probe);
    }

    // Progress is limited by both the time and the number of rounds.
    void report_progress() const {
        if (options_.on_progress) {
            options_.on_progress(
                std::min({1.0, elapsed_s() / std::max(options_.seconds, 1e-3),
                          static_cast<double>(n_passes_) / static_cast<double>(n_needed())}));
        }
    }

    // The passes that run regardless of time.
    std::size_t n_needed() const { return (1 + kFewestRounds) * probes_.size(); }
    double elapsed_s() const { return watch_.elapsed_ms() / 1000; }

    Forward& forward_;
    std::vector<Probe> probes_;
    const ProfileOptions& options_;
    Stopwatch watch_;
    std::vector<std::size_t> order_;
    std::vector<std::vector<PassTime>> times_;  // [probe]
    std::size_t n_passes_ = 0;
    std::mt19937 random_{1};
};

}  // namespace

CostSample summary_of(const Probe& probe, std::span<const PassTime> times) {
    std::vector<double> all;
    std::vector<double> quiet;
    for (const PassTime& time : times) {
        all.push_back(time.ms);
        if (!time.was_disturbed) {
            quiet.push_back(time.ms);
        }
    }
    const bool was_busy = quiet.size() < kFewestRounds;
    const std::vector<double>& counted = was_busy ? all : quiet;
    return {.plan = probe.plan,
            .n_context = probe.n_context,
            .n_rows = probe.n_rows,
            .has_head = probe.has_head,
            .ms = median(counted),
            .spread_ms = quartile_spread(counted),
            .n_measured = static_cast<int>(counted.size()),
            .was_busy = was_busy};
}

std::optional<PassTime> measure_pass(Forward& forward, const Probe& probe) {
    KNAP_ASSERT(probe.n_context >= 0 && probe.n_rows >= 1, "a probe is a pass");
    const std::vector<Token> tokens = some_tokens(probe.n_rows, forward.config().n_vocab);
    const std::vector<int> rows = row_numbers(probe.n_rows);
    // Without logits, the output of the last layer would be unused and not computed; capturing it
    // prevents that.
    const int last_stream = 2 * probe.plan.n_layers();
    // What decoding reads back, where a device ranks tokens: as many as top-k keeps by default.
    constexpr int kRanked = 40;
    const bool has_whole_head = probe.has_head && probe.plan.head() == HeadLevel::full;
    const ForwardStatistics before = forward.statistics();
    const std::int64_t switches_before = involuntary_switches();
    const Stopwatch watch;
    const ForwardResult result = forward.run({
        .tokens = tokens,
        .plan = &probe.plan,
        .first_row = probe.n_context,
        .layout = {.context = probe.n_context},
        .captures = std::span(&last_stream, probe.has_head ? 0 : 1),
        .logit_rows = std::span(rows).first(probe.has_head ? rows.size() : 0),
        .n_best = has_whole_head ? std::min(kRanked, forward.max_best()) : 0,
        .kind = PassKind::search,
    });
    const double ms = watch.elapsed_ms();
    const bool was_disturbed = involuntary_switches() != switches_before;
    if (!result.is_complete) {
        return std::nullopt;
    }
    // Steady decoding builds no graph. If this pass built one, only its computation counts.
    const ForwardStatistics& after = forward.statistics();
    const bool has_built = after.graphs.built != before.graphs.built;
    return PassTime{.ms = has_built ? after.compute_ms - before.compute_ms : ms,
                    .was_disturbed = was_disturbed};
}

std::optional<CostProfile> measure_profile(Forward& forward,
                                           Sequence& cache,
                                           std::span<const int> layer_classes,
                                           const ProfileOptions& options) {
    const int max_rows = std::clamp(options.max_rows, 1, forward.max_rows(0));
    const int max_context = std::min(options.max_context, cache.capacity() - max_rows);
    KNAP_ASSERT(!layer_classes.empty() && max_context >= 0, "a model, and room for its passes");
    Measurement measurement(forward, profile_probes(layer_classes, max_context, max_rows), options);
    if (!fill_rows(forward, cache) || !measurement.run()) {
        return std::nullopt;
    }
    if (options.on_progress) {
        options.on_progress(1);
    }
    return CostProfile{.layer_classes = {layer_classes.begin(), layer_classes.end()},
                       .layer_windows = options.layer_windows,
                       .expert_shares = options.expert_shares,
                       .samples = measurement.samples(),
                       .bytes = options.bytes};
}

}  // namespace knap
