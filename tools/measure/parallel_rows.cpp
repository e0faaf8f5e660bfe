#include "tools/measure/parallel_rows.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/quantile.h"
#include "base/text.h"
#include "tools/measure/bench_row.h"
#include "tools/measure/report/bench_speedup.h"
#include "tools/measure/text_comparison.h"
#include "tools/peer/peer_names.h"

namespace knap {
namespace {

double decode_ms_of(const ServedTurns& turns, std::size_t turn, std::size_t prompt) {
    return turns[turn][prompt].result.timings.decode_ms;
}

// Plain decoding of a prompt in a turn, with as many sessions.
double plain_ms_of(const ParallelTurns& race, std::size_t turn, std::size_t prompt) {
    return (decode_ms_of(race.plain_before, turn, prompt) +
            decode_ms_of(race.sides_turns.front(), turn, prompt)) /
           2;
}

std::vector<Result> results_of(const ServedTurns& turns, std::size_t prompt) {
    std::vector<Result> results;
    for (const std::vector<ServedRequest>& served : turns) {
        results.push_back(served[prompt].result);
    }
    return results;
}

double median_prefill_ms(std::span<const Result> results) {
    std::vector<double> times;
    for (const Result& result : results) {
        times.push_back(result.timings.prefill_ms);
    }
    return median(std::move(times));
}

// Empty when every answer to the prompt can be timed. With the rule `ratio` texts differ from turn
// to turn.
std::string why_unmeasurable(std::span<const ParallelTurns> races, std::size_t prompt) {
    for (const ParallelTurns& race : races) {
        for (std::size_t side = 0; side < race.sides.size(); ++side) {
            for (const Result& result : results_of(race.sides_turns[side], prompt)) {
                if (const std::string why = why_too_short(result); !why.empty()) {
                    return concat(race.sides[side].name, " with ", race.rule.name, ": ", why);
                }
            }
        }
    }
    return {};
}

// All answers of a side to a prompt. Plain decoding also has those at the start of each turn.
std::vector<Result> all_results_of(const ParallelTurns& race,
                                   std::size_t side,
                                   std::size_t prompt) {
    std::vector<Result> results = results_of(race.sides_turns[side], prompt);
    if (side == 0) {
        std::ranges::move(results_of(race.plain_before, prompt), std::back_inserter(results));
    }
    return results;
}

// Where the text of a side first differs from the reference in any turn.
std::optional<BenchDifference> difference_of(const BenchPrompt& prompt,
                                             const Result& reference,
                                             const Contender& side,
                                             std::span<const Result> results,
                                             const SamplingOptions& sampling) {
    std::optional<BenchDifference> first;
    for (const Result& result : results) {
        const auto difference =
            compare_texts(reference, result, side.speculation, sampling,
                          concat(place_of(prompt), ": ", side.name, ", served with others"));
        first = first ? first : difference;
    }
    return first;
}

// Builds the rows of one prompt with one rule.
class PromptRows {
  public:
    PromptRows(const BenchPrompt& prompt,
               std::size_t number,
               const Result& reference,
               const ParallelTurns& race,
               const SamplingOptions& sampling)
        : prompt_(prompt),
          number_(number),
          reference_(reference),
          race_(race),
          sampling_(sampling) {}

    std::vector<BenchRow> rows() const {
        std::vector<BenchRow> rows;
        for (std::size_t side = 0; side < race_.sides.size(); ++side) {
            rows.push_back(row_of(side));
        }
        if (!race_.peer.empty()) {
            rows.push_back(peer_row());
        }
        for (BenchRow& row : rows) {
            row.request_speedup =
                request_speedup_of(row.turns, row.prefill_ms, rows.front().prefill_ms);
        }
        return rows;
    }

  private:
    BenchRow row_of(std::size_t side) const {
        const std::vector<Result> results = results_of(race_.sides_turns[side], number_);
        BenchRow row = blank_row(prompt_, race_.rule.name, median_prefill_ms(results));
        std::vector<BenchTurn> turns;
        for (std::size_t turn = 0; turn < results.size(); ++turn) {
            // Plain decoding is compared with itself, as a control.
            const double plain_ms = side == 0 ? decode_ms_of(race_.plain_before, turn, number_)
                                              : plain_ms_of(race_, turn, number_);
            turns.push_back(make_turn(results[turn], plain_ms, reference_.n_generated));
        }
        fill_row(row, race_.sides[side], results, std::move(turns));
        row.bandwidth_gb_per_second = std::nullopt;  // sessions share what a pass reads
        row.first_difference = difference_of(prompt_, reference_, race_.sides[side],
                                             all_results_of(race_, side, number_), sampling_);
        return row;
    }

    BenchRow peer_row() const {
        std::vector<double> firsts;
        std::vector<LlamaAnswer> answers;
        std::vector<double> plain_ms;
        for (std::size_t turn = 0; turn < race_.peer.size(); ++turn) {
            const TokenTimes& times = race_.peer[turn][number_];
            const double ms = times.token_ms.back() - times.token_ms.front();
            firsts.push_back(times.first_ms());
            answers.push_back({.tokens = reference_.tokens,
                               .n_rounds = n_steps(reference_.n_generated),
                               .decode_ms = ms,
                               .verify_ms = ms});
            plain_ms.push_back(plain_ms_of(race_, turn, number_));
        }
        BenchRow row = blank_row(prompt_, race_.rule.name, median(firsts));
        fill_peer_row(row, kPlainPeer, race_.peer_setting, reference_, answers, plain_ms);
        return row;
    }

    const BenchPrompt& prompt_;
    std::size_t number_;
    const Result& reference_;
    const ParallelTurns& race_;
    const SamplingOptions& sampling_;
};

// The loads of all sides with one rule.
class RuleLoads {
  public:
    RuleLoads(const ParallelTurns& race,
              std::span<const Result> references,
              const SamplingOptions& sampling)
        : race_(race), references_(references), sampling_(sampling) {
        for (std::size_t turn = 0; turn < race.plain_before.size(); ++turn) {
            before_.push_back(load_times_of(times_of(race.plain_before[turn])));
            after_.push_back(load_times_of(times_of(race.sides_turns.front()[turn])));
        }
    }

    std::vector<BenchLoad> loads() const {
        std::vector<BenchLoad> loads;
        for (std::size_t side = 0; side < race_.sides.size(); ++side) {
            loads.push_back(load_of_side(side));
        }
        if (!race_.peer.empty()) {
            BenchLoad load{.strategy = kPlainPeer, .options = race_.peer_setting};
            for (const std::vector<TokenTimes>& times : race_.peer) {
                load.turns.push_back(load_times_of(times));
            }
            loads.push_back(std::move(load));
        }
        for (BenchLoad& load : loads) {
            load.acceptance = race_.rule.name;
            load.n_prompts = static_cast<int>(references_.size());
            load.throughput = throughput_of(load);
        }
        return loads;
    }

  private:
    BenchLoad load_of_side(std::size_t side) const {
        const Contender& contender = race_.sides[side];
        BenchLoad load{.strategy = contender.name,
                       .options = describe_options(contender.speculation),
                       .is_projection = contender.speculation.assume_acceptance >= 0};
        for (const std::vector<ServedRequest>& served : race_.sides_turns[side]) {
            load.turns.push_back(load_times_of(times_of(served)));
        }
        if (has_text_of_plain(contender.speculation, sampling_)) {
            load.n_identical = n_identical(side);
        }
        return load;
    }

    // Prompts whose every answer is the reference.
    int n_identical(std::size_t side) const {
        int n = 0;
        for (std::size_t prompt = 0; prompt < references_.size(); ++prompt) {
            const bool is_identical = std::ranges::all_of(
                all_results_of(race_, side, prompt),
                [&](const Result& result) { return result.tokens == references_[prompt].tokens; });
            n += is_identical ? 1 : 0;
        }
        return n;
    }

    // Plain decoding is compared with its run at the start of the turn, the others with both.
    BenchSpeedup throughput_of(const BenchLoad& load) const {
        const bool is_plain = load.strategy == plain_decoding().strategy;
        std::vector<double> ratios;
        for (std::size_t turn = 0; turn < load.turns.size(); ++turn) {
            const double plain_ms = is_plain ? before_[turn].wall_ms
                                             : (before_[turn].wall_ms + after_[turn].wall_ms) / 2;
            ratios.push_back(load.turns[turn].tokens_per_second * plain_ms /
                             (1e3 * before_[turn].n_tokens));
        }
        return mean_of_turns(ratios);
    }

    const ParallelTurns& race_;
    std::span<const Result> references_;
    const SamplingOptions& sampling_;
    std::vector<LoadTimes> before_;  // plain decoding, by turn
    std::vector<LoadTimes> after_;
};

}  // namespace

ParallelOutcome outcome_of(std::span<const BenchPrompt> prompts,
                           std::span<const Result> references,
                           std::span<const ParallelTurns> races,
                           const SamplingOptions& sampling) {
    ParallelOutcome outcome;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        if (const std::string why = why_unmeasurable(races, i); !why.empty()) {
            outcome.skipped.push_back({place_of(prompts[i]), why});
            continue;
        }
        for (const ParallelTurns& race : races) {
            std::ranges::move(PromptRows(prompts[i], i, references[i], race, sampling).rows(),
                              std::back_inserter(outcome.rows));
        }
    }
    for (const ParallelTurns& race : races) {
        std::ranges::move(RuleLoads(race, references, sampling).loads(),
                          std::back_inserter(outcome.loads));
    }
    return outcome;
}

}  // namespace knap
