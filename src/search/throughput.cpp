#include "search/throughput.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "base/error.h"

namespace knap {

namespace {

// Below every number, so that a speed of NaN is never the best.
constexpr double kNoRate = -std::numeric_limits<double>::infinity();

double executed_ms(const ModulePlan& plan, double attention_ms, double mlp_ms) {
    double ms = 0;
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        ms += plan.runs(layer, Module::attention) ? attention_ms : 0;
        ms += plan.runs(layer, Module::mlp) ? mlp_ms : 0;
    }
    return ms;
}

}  // namespace

double AcceptanceByDepth::at(int draft) const {
    const auto i = static_cast<std::size_t>(draft);
    return i < first.size() ? first[i] : rest;
}

double expected_tokens(const AcceptanceByDepth& acceptance, int draft_length) {
    double tokens = 1;
    double all_accepted = 1;
    for (int draft = 0; draft < draft_length; ++draft) {
        all_accepted *= acceptance.at(draft);
        tokens += all_accepted;
    }
    return tokens;
}

// The mean of the square of a count is the sum of (2 k - 1) times the probability that it is k or
// more.
double variance_of_tokens(std::span<const double> reached) {
    double mean = 0;
    double mean_square = 0;
    for (std::size_t i = 0; i < reached.size(); ++i) {
        mean += reached[i];
        mean_square += (2 * static_cast<double>(i) + 1) * reached[i];
    }
    return std::max(0.0, mean_square - mean * mean);
}

double variance_of_tokens(const AcceptanceByDepth& acceptance, int draft_length) {
    std::vector<double> reached;
    double all_accepted = 1;
    for (int draft = 0; draft < draft_length; ++draft) {
        all_accepted *= acceptance.at(draft);
        reached.push_back(all_accepted);
    }
    return variance_of_tokens(reached);
}

double RoundCost::round_ms(int draft_length) const {
    KNAP_ASSERT(draft_length >= 0 && draft_length <= max_length(),
                "the verification of a round has a known time");
    return draft_length * draft_step_ms + verify_ms[static_cast<std::size_t>(draft_length)];
}

std::vector<double> flat_verify(double ms, int max_length) {
    return std::vector<double>(static_cast<std::size_t>(max_length) + 1, ms);
}

RoundCost paper_round_cost(const ModulePlan& plan, const KindTimes& times, int max_length) {
    const double attention_ms = positive_ms(times.attention_ms);
    const double mlp_ms = positive_ms(times.mlp_ms);
    const double target_ms = (attention_ms + mlp_ms) * plan.n_layers();
    return {
        .draft_step_ms = executed_ms(plan, attention_ms, mlp_ms),
        .verify_ms = flat_verify(target_ms, max_length),
    };
}

double tokens_per_ms(const AcceptanceByDepth& acceptance, const RoundCost& cost, int draft_length) {
    return (expected_tokens(acceptance, draft_length) + cost.n_other_tokens) /
           cost.round_ms(draft_length);
}

std::optional<BestLength> best_length(const AcceptanceByDepth& acceptance,
                                      const RoundCost& cost,
                                      const LengthRange& lengths) {
    std::optional<BestLength> best;
    const int last = std::min(lengths.last, cost.max_length());
    for (int length = lengths.first; length <= last; ++length) {
        const double speed = tokens_per_ms(acceptance, cost, length);
        if (speed > (best ? best->tokens_per_ms : kNoRate)) {
            best = {.draft_length = length, .tokens_per_ms = speed};
        }
    }
    return best;
}

std::optional<PlanChoice> choose_plan(std::span<const RatedPlan> candidates,
                                      const ChoiceRule& rule) {
    std::optional<PlanChoice> choice;
    const bool passes_over_first = rule.passes_over_first && candidates.size() > 1;
    for (std::size_t i = passes_over_first ? 1 : 0; i < candidates.size(); ++i) {
        const RatedPlan& plan = candidates[i];
        const auto best = best_length(plan.acceptance, plan.cost, rule.lengths);
        if (best && best->tokens_per_ms > (choice ? choice->best.tokens_per_ms : kNoRate)) {
            choice = {.candidate = static_cast<int>(i), .best = *best};
        }
    }
    return choice;
}

AcceptancePrior prior_of(double rate, double n_drafts) {
    return {.accepted = rate * n_drafts, .rejected = (1 - rate) * n_drafts};
}

double shrunk_acceptance(int n_matches, int n_rows, const AcceptancePrior& prior) {
    const double weight = n_rows + prior.accepted + prior.rejected;
    return weight > 0 ? (n_matches + prior.accepted) / weight : 0;
}

}  // namespace knap
