#include "serve/answer/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace knap {
namespace {

int n_cached(const Result& result) {
    return result.n_prompt_reused + result.n_prompt_shared;
}

double ratio(double part, double whole) {
    return whole > 0 ? part / whole : 0.0;
}

// Sums of the figures of all choices.
struct Totals {
    explicit Totals(const std::vector<ChoiceFigures>& choices) {
        for (const ChoiceFigures& choice : choices) {
            const Result& result = choice.result;
            const Timings& timings = result.timings;
            n_cached += knap::n_cached(result);
            n_prompt += result.n_prompt - knap::n_cached(result);
            n_generated += result.n_generated;
            n_after_first += std::max(result.n_generated - 1, 0);
            prompt_ms += timings.prefill_ms;
            decode_ms += timings.decode_ms;
            rounds += result.speculation.rounds;
            n_drafted += result.speculation.n_drafted;
            n_nodes += result.speculation.n_tree_nodes;
            n_accepted += result.speculation.n_accepted;
            n_forced += result.speculation.n_forced;
            n_near_ties += static_cast<int>(result.speculation.near_ties.size());
            is_row_invariant &= result.speculation.row_invariant;
            queue_ms = std::max(queue_ms, choice.queue_ms);
            draft_ms += timings.draft_ms;
            verify_ms += timings.verify_ms;
            search_ms += timings.search_ms;
            other_ms += timings.other_ms;
        }
    }

    int n_cached = 0;
    int n_prompt = 0;  // computed
    int n_generated = 0;
    int n_after_first = 0;
    int rounds = 0;
    int n_drafted = 0;
    int n_nodes = 0;
    int n_accepted = 0;
    int n_forced = 0;
    int n_near_ties = 0;
    bool is_row_invariant = true;
    double prompt_ms = 0;
    double decode_ms = 0;
    double queue_ms = 0;
    double draft_ms = 0;
    double verify_ms = 0;
    double search_ms = 0;
    double other_ms = 0;
};

Json decisions_json(const std::vector<ChoiceFigures>& choices) {
    Json list = Json::array();
    for (const ChoiceFigures& choice : choices) {
        for (const Decision& decision : choice.result.decisions) {
            list.push_back({{"token", decision.token},
                            {"source", decision.source},
                            {"plan", decision.plan},
                            {"reason", decision.reason},
                            {"predicted", decision.predicted},
                            {"measured", decision.measured}});
        }
    }
    return list;
}

}  // namespace

Json usage_json(const std::vector<ChoiceFigures>& choices, bool has_prediction) {
    std::map<int, std::pair<int, int>> prompts;  // tokens of each prompt, and how many were cached
    int n_completion = 0;
    int n_reasoning = 0;
    SourceStatistics copies;
    for (const ChoiceFigures& choice : choices) {
        copies.n_drafted += has_prediction ? choice.result.speculation.copies.n_drafted : 0;
        copies.n_accepted += has_prediction ? choice.result.speculation.copies.n_accepted : 0;
        const auto [at, is_new] =
            prompts.try_emplace(choice.prompt, choice.result.n_prompt, n_cached(choice.result));
        if (!is_new) {
            // Choices after the first find the prompt in the cache; the first tells what was there.
            at->second.second = std::min(at->second.second, n_cached(choice.result));
        }
        n_completion += choice.result.n_generated;
        n_reasoning += choice.n_reasoning;
    }
    int n_prompt = 0;
    int n_cached_prompt = 0;
    for (const auto& [number, counts] : prompts) {
        n_prompt += counts.first;
        n_cached_prompt += counts.second;
    }
    return {{"prompt_tokens", n_prompt},
            {"completion_tokens", n_completion},
            {"total_tokens", n_prompt + n_completion},
            {"prompt_tokens_details", {{"cached_tokens", n_cached_prompt}}},
            {"completion_tokens_details",
             {{"reasoning_tokens", n_reasoning},
              {"accepted_prediction_tokens", copies.n_accepted},
              {"rejected_prediction_tokens", copies.n_drafted - copies.n_accepted}}}};
}

Json timings_json(const std::vector<ChoiceFigures>& choices) {
    const Totals sum(choices);
    Json timings{{"cache_n", sum.n_cached},
                 {"prompt_n", sum.n_prompt},
                 {"prompt_ms", sum.prompt_ms},
                 {"prompt_per_token_ms", ratio(sum.prompt_ms, sum.n_prompt)},
                 {"prompt_per_second", ratio(1000.0 * sum.n_prompt, sum.prompt_ms)},
                 {"predicted_n", sum.n_generated},
                 {"predicted_ms", sum.decode_ms},
                 {"predicted_per_token_ms", ratio(sum.decode_ms, sum.n_after_first)},
                 {"predicted_per_second", ratio(1000.0 * sum.n_after_first, sum.decode_ms)}};
    if (sum.n_drafted > 0) {
        timings["draft_n"] = sum.n_drafted;
        timings["draft_n_accepted"] = sum.n_accepted;
    }
    return timings;
}

Json speculation_json(const std::vector<ChoiceFigures>& choices,
                      const std::vector<std::string>& ignored,
                      bool has_decisions) {
    const Totals sum(choices);
    const Result& first = choices.front().result;
    Json object{{"strategy", first.strategy},
                {"seed", static_cast<std::int64_t>(first.seed)},  // as it was asked for
                {"rounds", sum.rounds},
                {"n_drafted", sum.n_drafted},
                {"n_tree_nodes", sum.n_nodes},
                {"n_accepted", sum.n_accepted},
                {"acceptance_rate", ratio(sum.n_accepted, sum.n_drafted)},
                {"mean_accepted_length", ratio(sum.n_after_first, sum.rounds)},
                {"acceptance_by_position", first.speculation.acceptance_by_position},
                {"n_forced", sum.n_forced},
                {"row_invariant", sum.is_row_invariant},
                {"near_ties", sum.n_near_ties},
                {"queue_ms", sum.queue_ms},
                {"draft_ms", sum.draft_ms},
                {"verify_ms", sum.verify_ms},
                {"search_ms", sum.search_ms},
                {"other_ms", sum.other_ms}};
    if (!ignored.empty()) {
        object["ignored"] = ignored;
    }
    if (has_decisions) {
        object["decisions"] = decisions_json(choices);
    }
    return object;
}

}  // namespace knap
