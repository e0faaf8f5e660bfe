#include "decode/knapspec_paper/paper_search.h"

#include <cstddef>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "search/throughput.h"

namespace knap {

namespace {

// alpha_j, when sampling too (docs/methods.md, "Acceptance estimate").
double agreement(std::span<const Token> choices, std::span<const Token> target) {
    KNAP_ASSERT(choices.size() == target.size() && !target.empty(), "one choice for each row");
    const int n_agreed = std::inner_product(choices.begin(), choices.end(), target.begin(), 0,
                                            std::plus<>(), std::equal_to<>());
    return static_cast<double>(n_agreed) / static_cast<double>(target.size());
}

// The candidates in the form that choose_plan() rates. Returns fewer when cancelled.
std::vector<RatedPlan> rate(std::span<const KnapsackCandidate> candidates,
                            const PaperTask& task,
                            int max_length) {
    std::vector<RatedPlan> rated;
    for (const KnapsackCandidate& candidate : candidates) {
        const auto choices = task.choices_of_state(static_cast<int>(rated.size()));
        if (choices.empty()) {
            break;
        }
        rated.push_back({
            .acceptance = {.rest = agreement(choices, task.target_choices)},
            .cost = paper_round_cost(candidate.plan, task.times, max_length),
        });
    }
    return rated;
}

}  // namespace

KnapsackProblem paper_problem(const PaperOptions& options, const KindTimes& times, int n_layers) {
    return skip_problem(kind_weights(times, options.weight_cap),
                        {.n_layers = n_layers, .forces_outer_layers = options.forces_outer_layers});
}

std::optional<PaperChoice> search_as_published(const PaperOptions& options, const PaperTask& task) {
    const auto candidates = solve_knapsack(paper_problem(options, task.times, task.n_layers),
                                           options.knapsack, task.evaluator);
    const auto rated = rate(candidates, task, options.choice.lengths.last);
    const auto choice = choose_plan(rated, options.choice);
    if (!choice || rated.size() < candidates.size()) {
        return std::nullopt;
    }
    const auto chosen = static_cast<std::size_t>(choice->candidate);
    const double plain_ms = rated[chosen].cost.round_ms(/*draft_length=*/0);
    return PaperChoice{
        .plan = candidates[chosen].plan,
        .draft_length = choice->best.draft_length,
        .acceptance = rated[chosen].acceptance.rest,
        .speedup = choice->best.tokens_per_ms * plain_ms,
        .n_candidates = static_cast<int>(candidates.size()),
    };
}

}  // namespace knap
