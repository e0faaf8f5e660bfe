#include "search/plan_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <unordered_set>
#include <utility>

#include "forward/forward.h"
#include "kv/sequence.h"
#include "model/config.h"
#include "search/knapsack.h"
#include "search/module_weights.h"
#include "search/similarity.h"
#include "search/throughput.h"

namespace knap {

namespace {

using Source = FoundPlan::Source;

constexpr int kAnyRows = std::numeric_limits<int>::max();
constexpr double kNoSpeed = -std::numeric_limits<double>::infinity();

// An estimate of the agreement that replay will measure. On the default model and three texts 0.78,
// 0.72, 0.51 and 0.35 of the rows agreed where the mean cosine was 0.95, 0.90, 0.86 and 0.80.
double guessed_agreement(double mean_cosine) {
    return std::pow(std::max(mean_cosine, 0.0), 4);
}

// Plans from one source, in replay order.
struct Queue {
    Source source{};
    std::vector<ModulePlan> plans{};
};

class PlanSearch {
  public:
    PlanSearch(Forward& forward,
               const Sequence& cache,
               const CostModel& costs,
               const PlanSearchOptions& options);

    std::optional<std::vector<FoundPlan>> run(std::span<const Token> text) const;

  private:
    RoundCost cost_of(const ModulePlan& plan) const;
    double best_speed(const RoundCost& cost, double acceptance) const;
    bool could_pay(const ModulePlan& plan) const;
    bool is_runnable(const ModulePlan& plan) const;
    std::vector<ModulePlan> worth_replaying(std::vector<ModulePlan> plans) const;

    std::vector<Window> windows_inside_context() const;
    std::vector<ModulePlan> uniform_plans() const;
    BinnedProblem knapsack_problem() const;
    std::optional<std::vector<ModulePlan>> knapsack_plans(const BinnedProblem& binned,
                                                          const TargetRows& target) const;
    std::vector<ModulePlan> by_predicted_speed(std::vector<KnapsackCandidate> candidates,
                                               int n_rows) const;
    std::optional<std::vector<FoundPlan>> replay_in_turns(std::span<const Queue> queues,
                                                          const TargetRows& target) const;

    Forward& forward_;
    const Sequence& cache_;
    const CostModel& costs_;
    const PlanSearchOptions& options_;
    int n_layers_;
    int n_context_;
};

PlanSearch::PlanSearch(Forward& forward,
                       const Sequence& cache,
                       const CostModel& costs,
                       const PlanSearchOptions& options)
    : forward_(forward),
      cache_(cache),
      costs_(costs),
      options_(options),
      n_layers_(forward.config().n_layers),
      n_context_(cache.committed()) {}

std::optional<std::vector<FoundPlan>> PlanSearch::run(std::span<const Token> text) const {
    std::array<Queue, 3> queues = {{
        {.source = Source::known, .plans = worth_replaying(options_.known)},
        {.source = Source::window, .plans = worth_replaying(uniform_plans())},
        {.source = Source::knapsack},
    }};
    const bool has_plans =
        std::ranges::any_of(queues, [](const Queue& queue) { return !queue.plans.empty(); });
    const int n_rows = target_rows_that_fit(forward_, cache_, options_.n_rows);
    if (n_rows == 0 || !(has_plans || options_.runs_knapsack)) {
        return std::vector<FoundPlan>{};
    }
    const BinnedProblem binned = options_.runs_knapsack ? knapsack_problem() : BinnedProblem{};
    const TargetRows target =
        collect_target_rows(forward_, cache_, text,
                            {.n_rows = n_rows,
                             .streams = options_.runs_knapsack,
                             .logits = static_cast<bool>(options_.rule),
                             .n_more_streams = most_states(binned.problem, options_.max_cells)});
    if (target.tokens.empty()) {
        return std::nullopt;
    }
    if (options_.runs_knapsack) {
        std::optional<std::vector<ModulePlan>> plans = knapsack_plans(binned, target);
        if (!plans) {
            return std::nullopt;
        }
        queues.back().plans = worth_replaying(std::move(*plans));
    }
    return replay_in_turns(queues, target);
}

RoundCost PlanSearch::cost_of(const ModulePlan& plan) const {
    return costs_.round_cost(plan, n_context_, options_.max_length);
}

// Tokens per ms at the best draft length.
double PlanSearch::best_speed(const RoundCost& cost, double acceptance) const {
    const AcceptanceByDepth all_depths{.rest = std::clamp(acceptance, 0.0, 1.0)};
    const auto best = best_length(all_depths, cost, {.first = 1, .last = options_.max_length});
    if (!best) {
        return kNoSpeed;
    }
    return best->tokens_per_ms;
}

// True if the plan would beat plain decoding with every draft accepted. Never true of the whole
// model.
bool PlanSearch::could_pay(const ModulePlan& plan) const {
    return !plan.is_full() && best_speed(cost_of(plan), 1) > 1 / costs_.plain_step_ms(n_context_);
}

bool PlanSearch::is_runnable(const ModulePlan& plan) const {
    return plan.n_layers() == n_layers_ && distinct_windows(plan).size() <= kMaxWindows;
}

std::vector<ModulePlan> PlanSearch::worth_replaying(std::vector<ModulePlan> plans) const {
    for (ModulePlan& plan : plans) {
        plan = canonical(std::move(plan), n_context_);
    }
    std::erase_if(
        plans, [this](const ModulePlan& plan) { return !is_runnable(plan) || !could_pay(plan); });
    return plans;
}

std::vector<Window> PlanSearch::windows_inside_context() const {
    std::vector<Window> windows;
    for (const Window& window : options_.windows) {
        if (window.n_rows() < n_context_ && std::ranges::find(windows, window) == windows.end()) {
            windows.push_back(window);
        }
    }
    return windows;
}

std::vector<ModulePlan> PlanSearch::uniform_plans() const {
    std::vector<ModulePlan> plans;
    for (const Window& window : windows_inside_context()) {
        plans.push_back(uniform_window_plan(n_layers_, window));
    }
    return plans;
}

BinnedProblem PlanSearch::knapsack_problem() const {
    std::vector<Window> windows = windows_inside_context();
    windows.resize(std::min<std::size_t>(windows.size(), kMaxWindows));
    return binned_problem(costs_.module_times(n_context_, windows), {.n_bins = options_.n_bins});
}

// Returns nullopt when cancelled.
std::optional<std::vector<ModulePlan>> PlanSearch::knapsack_plans(const BinnedProblem& binned,
                                                                  const TargetRows& target) const {
    const RoundCost whole_model = {
        .draft_step_ms = costs_.plain_step_ms(n_context_),
        .verify_ms = costs_.verify_times_ms(n_context_, options_.max_length),
    };
    // Predicts the speed of a cell as if all later modules ran at `full` and its mean cosine were
    // its acceptance. That is optimistic on purpose: cells that save a lot should reach the last
    // row.
    const auto rank = [&](int saved, double mean_cosine) {
        RoundCost cost = whole_model;
        cost.draft_step_ms = positive_ms(cost.draft_step_ms - saved * binned.bin_ms);
        return best_speed(cost, mean_cosine);
    };
    SimilarityEvaluator evaluator(forward_, cache_, target, kAnyRows);
    std::vector<KnapsackCandidate> candidates = solve_knapsack(binned.problem,
                                                               {.min_cosine = options_.min_cosine,
                                                                .reuse_target = true,
                                                                .drop_dominated = true,
                                                                .max_cells = options_.max_cells,
                                                                .rank = rank},
                                                               evaluator);
    if (evaluator.is_cancelled()) {
        return std::nullopt;
    }
    return by_predicted_speed(std::move(candidates), target.n_rows());
}

std::vector<ModulePlan> PlanSearch::by_predicted_speed(std::vector<KnapsackCandidate> candidates,
                                                       int n_rows) const {
    std::vector<std::pair<double, ModulePlan>> ranked;
    for (KnapsackCandidate& candidate : candidates) {
        const double speed =
            best_speed(cost_of(candidate.plan), guessed_agreement(candidate.score / n_rows));
        ranked.emplace_back(speed, std::move(candidate.plan));
    }
    std::ranges::stable_sort(ranked, std::greater<>(), &std::pair<double, ModulePlan>::first);
    std::vector<ModulePlan> plans;
    plans.reserve(ranked.size());
    for (auto& [speed, plan] : ranked) {
        plans.push_back(std::move(plan));
    }
    return plans;
}

// Predictions from cosines cannot be compared with known plans, which have none. So the sources
// take turns and none crowds out another.
std::optional<std::vector<FoundPlan>> PlanSearch::replay_in_turns(std::span<const Queue> queues,
                                                                  const TargetRows& target) const {
    std::vector<FoundPlan> found;
    std::unordered_set<ModulePlan> seen;
    std::size_t longest = 0;
    for (const Queue& queue : queues) {
        longest = std::max(longest, queue.plans.size());
    }
    for (std::size_t turn = 0; turn < longest; ++turn) {
        for (const Queue& queue : queues) {
            if (static_cast<int>(found.size()) >= options_.max_replays) {
                return found;
            }
            if (turn >= queue.plans.size() || !seen.insert(queue.plans[turn]).second) {
                continue;
            }
            const ModulePlan& plan = queue.plans[turn];
            const auto replayed = replay(forward_, cache_, plan, target, options_.rule);
            if (!replayed) {
                return std::nullopt;
            }
            found.push_back({.plan = plan,
                             .agreed = replayed->agreed,
                             .n_rows = replayed->n_rows,
                             .draft_step_ms = costs_.draft_step_ms(plan, n_context_),
                             .source = queue.source});
        }
    }
    return found;
}

// The number of cells in the table's row before module `module`: one more per earlier module, up to
// the limit or the number of bins.
int expected_cells(const PlanSearchOptions& options, int module) {
    const int most = options.max_cells > 0 ? options.max_cells : options.n_bins + 1;
    return std::min({most, options.n_bins + 1, module + 1});
}

// The row passes through single modules that a knapsack takes, converted to rows of the whole
// model.
double knapsack_rows(const PlanSearchOptions& options, int n_layers) {
    const int n_windows = std::min(static_cast<int>(options.windows.size()), kMaxWindows);
    double n_branches = 0;
    for (int layer = 0; layer < n_layers; ++layer) {
        n_branches += (1.0 + n_windows) * expected_cells(options, 2 * layer);
        n_branches += expected_cells(options, 2 * layer + 1);
    }
    return n_layers > 0 ? n_branches * options.n_rows / (2.0 * n_layers) : 0;
}

}  // namespace

std::optional<std::vector<FoundPlan>> search_plans(Forward& forward,
                                                   const Sequence& cache,
                                                   std::span<const Token> text,
                                                   const CostModel& costs,
                                                   const PlanSearchOptions& options) {
    return PlanSearch(forward, cache, costs, options).run(text);
}

double predicted_rows(const PlanSearchOptions& options, int n_layers) {
    const double target = options.n_rows;
    const double replays = static_cast<double>(options.max_replays) * options.n_rows;
    return target + replays + (options.runs_knapsack ? knapsack_rows(options, n_layers) : 0);
}

std::vector<FoundPlan> frontier(std::vector<FoundPlan> plans) {
    // Cheapest first; of plans with equal cost the better one first, so that it is the one kept.
    std::ranges::stable_sort(plans, [](const FoundPlan& a, const FoundPlan& b) {
        return std::pair(a.draft_step_ms, -a.agreement()) <
               std::pair(b.draft_step_ms, -b.agreement());
    });
    double best = -1;
    std::erase_if(plans, [&best](const FoundPlan& plan) {
        const bool is_beaten = plan.agreement() <= best;
        best = std::max(best, plan.agreement());
        return is_beaten;
    });
    return plans;
}

}  // namespace knap
