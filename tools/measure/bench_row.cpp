#include "tools/measure/bench_row.h"

#include <algorithm>
#include <utility>

#include "base/quantile.h"
#include "tools/measure/report/bench_speedup.h"
#include "tools/measure/statistics.h"

namespace knap {
namespace {

// The decisions that draft with a plan. Each lasts until the next decision of any kind.
std::vector<BenchLevel> levels_of(const Result& result, const std::string& given_plan) {
    if (!given_plan.empty()) {
        return {{.plan = given_plan, .n_context = result.n_prompt, .n_tokens = result.n_generated}};
    }
    std::vector<BenchLevel> levels;
    int end = result.n_generated;
    const std::vector<Decision>& decisions = result.decisions;
    for (auto decision = decisions.rbegin(); decision != decisions.rend(); ++decision) {
        if (!decision->plan.empty() && end > decision->token) {
            levels.push_back({.plan = decision->plan,
                              .n_context = result.n_prompt + decision->token,
                              .n_tokens = end - decision->token});
        }
        end = std::min(end, decision->token);
    }
    std::ranges::reverse(levels);
    return levels;
}

// Takes the values of the last decision that has both a prediction and a measurement.
void fill_prediction(BenchRow& row, const std::vector<Decision>& decisions) {
    for (auto decision = decisions.rbegin(); decision != decisions.rend(); ++decision) {
        if (decision->predicted > 0 && decision->measured > 0) {
            row.predicted = decision->predicted;
            row.measured = decision->measured;
            return;
        }
    }
}

double median_bandwidth(std::span<const Result> results) {
    std::vector<double> speeds;
    for (const Result& result : results) {
        speeds.push_back(result.timings.bandwidth_gb_per_second);
    }
    return median(std::move(speeds));
}

void fill_drafts(BenchRow& row, const SpeculationStatistics& drafts) {
    row.rounds = drafts.rounds;
    row.n_drafted = drafts.n_drafted;
    row.n_accepted = drafts.n_accepted;
    if (drafts.n_drafted > 0) {
        row.acceptance_rate = drafts.acceptance_rate;
    }
    row.mean_accepted_length = drafts.mean_accepted_length;
    row.acceptance_by_position = drafts.acceptance_by_position;
    row.near_ties = static_cast<int>(drafts.near_ties.size());
    row.is_projection = drafts.is_projection;
}

void fill_drafts(BenchRow& row, const LlamaAnswer& answer) {
    row.rounds = answer.n_rounds;
    row.n_drafted = answer.n_drafted();
    row.n_accepted = answer.n_accepted();
    if (row.n_drafted > 0) {
        row.acceptance_rate = static_cast<double>(row.n_accepted) / row.n_drafted;
    }
    const int n_written = n_steps(static_cast<int>(answer.tokens.size()));
    row.mean_accepted_length = static_cast<double>(n_written) / answer.n_rounds;
    for (std::size_t i = 0; i < answer.drafted.size(); ++i) {
        row.acceptance_by_position.push_back(static_cast<double>(answer.accepted[i]) /
                                             answer.drafted[i]);
    }
}

BenchTurn make_turn(const LlamaAnswer& answer, double plain_ms) {
    return {.decode_ms = answer.decode_ms,
            .plain_ms = plain_ms,
            .n_generated = static_cast<int>(answer.tokens.size()),
            .draft_ms = answer.draft_ms,
            .verify_ms = answer.verify_ms,
            .other_ms = answer.decode_ms - answer.draft_ms - answer.verify_ms};
}

}  // namespace

int n_steps(int n_generated) {
    return std::max(n_generated - 1, 0);
}

BenchTurn make_turn(const Result& result, double plain_ms, int n_plain) {
    const Timings& timings = result.timings;
    const double scale = static_cast<double>(n_steps(result.n_generated)) / n_steps(n_plain);
    return {.decode_ms = timings.decode_ms,
            .plain_ms = plain_ms * scale,
            .n_generated = result.n_generated,
            .draft_ms = timings.draft_ms,
            .verify_ms = timings.verify_ms,
            .search_ms = timings.search_ms,
            .other_ms = timings.other_ms};
}

double tokens_per_second_of(std::span<const BenchTurn> turns) {
    double n_tokens = 0;
    double ms = 0;
    for (const BenchTurn& turn : turns) {
        n_tokens += n_steps(turn.n_generated);
        ms += turn.decode_ms;
    }
    return 1e3 * n_tokens / ms;
}

// Empty when the strategy finds its own plans.
static std::string plan_of(const SpeculationOptions& options) {
    const auto found = options.settings.find("plan");
    return found == options.settings.end() ? "" : found->second;
}

BenchRow blank_row(const BenchPrompt& prompt, const std::string& acceptance, double prefill_ms) {
    return {.data = prompt.data,
            .id = prompt.id,
            .task = prompt.task,
            .depth = prompt.depth,
            .n_prompt = static_cast<int>(prompt.tokens.size()),
            .n_document_tokens = prompt.n_document_tokens,
            .is_cut = prompt.is_cut(),
            .prefill_ms = prefill_ms,
            .acceptance = acceptance};
}

void fill_row(BenchRow& row,
              const Contender& contender,
              std::span<const Result> results,
              std::vector<BenchTurn> turns) {
    const Result& last = results.back();
    row.strategy = contender.name;
    row.options = describe_options(contender.speculation);
    row.speedup = speedup_of(turns);
    row.tokens_per_second = tokens_per_second_of(turns);
    row.turns = std::move(turns);
    fill_drafts(row, last.speculation);
    row.peak_memory_bytes = last.memory.peak_rss_bytes;
    row.bandwidth_gb_per_second = median_bandwidth(results);
    row.distinct_trigrams = distinct_trigrams(last.tokens);
    row.levels = levels_of(last, plan_of(contender.speculation));
    fill_prediction(row, last.decisions);
}

void fill_peer_row(BenchRow& row,
                   const std::string& name,
                   const std::string& setting,
                   const Result& reference,
                   std::span<const LlamaAnswer> answers,
                   std::span<const double> plain_ms) {
    for (std::size_t turn = 0; turn < answers.size(); ++turn) {
        row.turns.push_back(make_turn(answers[turn], plain_ms[turn]));
    }
    row.strategy = name;
    row.options = setting;
    row.speedup = speedup_of(row.turns);
    row.tokens_per_second = tokens_per_second_of(row.turns);
    fill_drafts(row, answers.back());
    row.peak_memory_bytes = reference.memory.peak_rss_bytes;
    row.distinct_trigrams = distinct_trigrams(answers.back().tokens);
}

}  // namespace knap
