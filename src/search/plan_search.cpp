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

std::vector<Window> windows_inside(std::span<const Window> all, int n_context) {
    std::vector<Window> windows;
    for (const Window& window : all) {
        if (window.n_rows() < n_context && std::ranges::find(windows, window) == windows.end()) {
            windows.push_back(window);
        }
    }
    return windows;
}

BinnedProblem knapsack_problem(const CostModel& costs,
                               int n_context,
                               const PlanSearchOptions& options) {
    const std::vector<Window> windows = knapsack_windows(options.windows, n_context);
    return binned_problem(costs.module_times(n_context, windows), {.n_bins = options.n_bins});
}

}  // namespace

std::vector<Window> knapsack_windows(std::span<const Window> windows, int n_context) {
    std::vector<Window> sizes = windows_inside(windows, n_context);
    std::ranges::sort(sizes, {}, &Window::n_rows);
    constexpr std::size_t kMost = kMaxWindows;
    for (std::size_t i = 0; i < kMost && sizes.size() > kMost; ++i) {
        sizes[i] = sizes[(i * (sizes.size() - 1) + (kMost - 1) / 2) / (kMost - 1)];
    }
    sizes.resize(std::min(sizes.size(), kMost));
    return sizes;
}

class PlanSearch::Impl {
  public:
    Impl(Forward& forward,
         const Sequence& cache,
         const CostModel& costs,
         TargetRows target,
         PlanSearchOptions options);

    bool is_done() const { return !knapsack_ && next_ == waiting_.size(); }
    double next_rows() const;
    bool advance();
    const TargetRows& target() const { return target_; }
    std::span<const FoundPlan> found() const { return found_; }

  private:
    // A plan to replay.
    struct Waiting {
        ModulePlan plan;
        Source source{};
    };

    RoundCost cost_of(const ModulePlan& plan) const;
    double best_speed(const RoundCost& cost, double acceptance) const;
    bool could_pay(const ModulePlan& plan) const;
    bool is_runnable(const ModulePlan& plan) const;
    std::vector<ModulePlan> worth_replaying(std::vector<ModulePlan> plans) const;

    std::vector<ModulePlan> uniform_plans() const;
    void start_knapsack();
    bool advance_knapsack();
    std::vector<ModulePlan> by_predicted_speed(std::vector<KnapsackCandidate> candidates) const;
    void queue_replays(std::vector<ModulePlan> of_knapsack);
    bool replay_next();

    Forward& forward_;
    const Sequence& cache_;
    CostModel costs_;
    TargetRows target_;
    PlanSearchOptions options_;
    int n_layers_;
    int n_context_;
    double bin_ms_ = 0;
    std::unique_ptr<SimilarityEvaluator> evaluator_;
    std::unique_ptr<KnapsackSearch> knapsack_;  // while it runs
    std::vector<Waiting> waiting_;
    std::size_t next_ = 0;  // of those that wait
    std::vector<FoundPlan> found_;
};

PlanSearch::Impl::Impl(Forward& forward,
                       const Sequence& cache,
                       const CostModel& costs,
                       TargetRows target,
                       PlanSearchOptions options)
    : forward_(forward),
      cache_(cache),
      costs_(costs),
      target_(std::move(target)),
      options_(std::move(options)),
      n_layers_(forward.config().n_layers),
      n_context_(cache.committed()) {
    if (target_.n_rows() == 0) {
        return;
    }
    if (options_.runs_knapsack) {
        start_knapsack();
    } else {
        queue_replays({});
    }
}

double PlanSearch::Impl::next_rows() const {
    if (knapsack_) {
        const double n_modules = 2.0 * n_layers_;
        return static_cast<double>(knapsack_->n_next_states()) * target_.n_rows() / n_modules;
    }
    const ModulePlan& plan = waiting_[next_].plan;
    return target_.n_rows() * costs_.draft_step_ms(plan, n_context_) /
           costs_.plain_step_ms(n_context_);
}

bool PlanSearch::Impl::advance() {
    if (scratch_rows(forward_, cache_) < target_.n_rows()) {
        return false;
    }
    return knapsack_ ? advance_knapsack() : replay_next();
}

RoundCost PlanSearch::Impl::cost_of(const ModulePlan& plan) const {
    return costs_.round_cost(plan, n_context_, options_.max_length);
}

// Tokens per ms at the best draft length.
double PlanSearch::Impl::best_speed(const RoundCost& cost, double acceptance) const {
    const AcceptanceByDepth all_depths{.rest = std::clamp(acceptance, 0.0, 1.0)};
    const auto best = best_length(all_depths, cost, {.first = 1, .last = options_.max_length});
    if (!best) {
        return kNoSpeed;
    }
    return best->tokens_per_ms;
}

// True if the plan would beat plain decoding with every draft accepted. Never true of the whole
// model.
bool PlanSearch::Impl::could_pay(const ModulePlan& plan) const {
    return !plan.is_full() && best_speed(cost_of(plan), 1) > 1 / costs_.plain_step_ms(n_context_);
}

bool PlanSearch::Impl::is_runnable(const ModulePlan& plan) const {
    return plan.n_layers() == n_layers_ && distinct_windows(plan).size() <= kMaxWindows;
}

std::vector<ModulePlan> PlanSearch::Impl::worth_replaying(std::vector<ModulePlan> plans) const {
    for (ModulePlan& plan : plans) {
        plan = canonical(std::move(plan), n_context_);
    }
    std::erase_if(
        plans, [this](const ModulePlan& plan) { return !is_runnable(plan) || !could_pay(plan); });
    return plans;
}

std::vector<ModulePlan> PlanSearch::Impl::uniform_plans() const {
    const std::vector<int> own_windows = forward_.config().windows();
    std::vector<ModulePlan> plans;
    for (const Window& window : windows_inside(options_.windows, n_context_)) {
        plans.push_back(uniform_window_plan(window, own_windows));
    }
    return plans;
}

void PlanSearch::Impl::start_knapsack() {
    const BinnedProblem binned = knapsack_problem(costs_, n_context_, options_);
    bin_ms_ = binned.bin_ms;
    const RoundCost whole_model = {
        .draft_step_ms = costs_.plain_step_ms(n_context_),
        .verify_ms = costs_.verify_times_ms(n_context_, options_.max_length),
    };
    // Predicts the speed of a cell as if all later modules ran at `full` and its mean cosine were
    // its acceptance. That is optimistic on purpose: cells that save a lot should reach the last
    // row.
    const auto rank = [this, whole_model](int saved, double mean_cosine) {
        RoundCost cost = whole_model;
        cost.draft_step_ms = positive_ms(cost.draft_step_ms - saved * bin_ms_);
        return best_speed(cost, mean_cosine);
    };
    evaluator_ = std::make_unique<SimilarityEvaluator>(
        forward_, cache_, target_, kAnyRows, most_states(binned.problem, options_.max_cells));
    knapsack_ = std::make_unique<KnapsackSearch>(binned.problem,
                                                 KnapsackOptions{.min_cosine = options_.min_cosine,
                                                                 .reuse_target = true,
                                                                 .drop_dominated = true,
                                                                 .max_cells = options_.max_cells,
                                                                 .rank = rank},
                                                 *evaluator_);
}

bool PlanSearch::Impl::advance_knapsack() {
    if (!knapsack_->advance()) {
        return false;
    }
    if (knapsack_->is_done()) {
        queue_replays(by_predicted_speed(knapsack_->candidates()));
        knapsack_.reset();
        evaluator_.reset();
    }
    return true;
}

std::vector<ModulePlan> PlanSearch::Impl::by_predicted_speed(
    std::vector<KnapsackCandidate> candidates) const {
    std::vector<std::pair<double, ModulePlan>> ranked;
    for (KnapsackCandidate& candidate : candidates) {
        const double speed = best_speed(cost_of(candidate.plan),
                                        guessed_agreement(candidate.score / target_.n_rows()));
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
void PlanSearch::Impl::queue_replays(std::vector<ModulePlan> of_knapsack) {
    struct Queue {
        Source source{};
        std::vector<ModulePlan> plans{};
    };
    const std::array<Queue, 3> queues = {{
        {.source = Source::known, .plans = worth_replaying(options_.known)},
        {.source = Source::window, .plans = worth_replaying(uniform_plans())},
        {.source = Source::knapsack, .plans = worth_replaying(std::move(of_knapsack))},
    }};
    std::size_t longest = 0;
    for (const Queue& queue : queues) {
        longest = std::max(longest, queue.plans.size());
    }
    std::unordered_set<ModulePlan> seen;
    for (std::size_t turn = 0; turn < longest; ++turn) {
        for (const Queue& queue : queues) {
            const bool has_room = static_cast<int>(waiting_.size()) < options_.max_replays;
            if (has_room && turn < queue.plans.size() && seen.insert(queue.plans[turn]).second) {
                waiting_.push_back({.plan = queue.plans[turn], .source = queue.source});
            }
        }
    }
}

bool PlanSearch::Impl::replay_next() {
    const auto& [plan, source] = waiting_[next_];
    const auto replayed = replay(forward_, cache_, plan, target_, options_.choose);
    if (!replayed) {
        return false;
    }
    ++next_;
    found_.push_back({.plan = plan,
                      .n_agreed = replayed->n_agreed,
                      .n_rows = replayed->n_rows,
                      .draft_step_ms = costs_.draft_step_ms(plan, n_context_),
                      .source = source});
    return true;
}

PlanSearch::PlanSearch(Forward& forward,
                       const Sequence& cache,
                       const CostModel& costs,
                       TargetRows target,
                       PlanSearchOptions options)
    : impl_(std::make_unique<Impl>(forward, cache, costs, std::move(target), std::move(options))) {}

PlanSearch::~PlanSearch() = default;

bool PlanSearch::is_done() const {
    return impl_->is_done();
}

double PlanSearch::next_rows() const {
    return impl_->next_rows();
}

bool PlanSearch::advance() {
    return impl_->advance();
}

const TargetRows& PlanSearch::target() const {
    return impl_->target();
}

std::span<const FoundPlan> PlanSearch::found() const {
    return impl_->found();
}

namespace {

// The number of cells in the table's row before module `module`: one more per earlier module, up to
// the limit or the number of bins.
int expected_cells(const PlanSearchOptions& options, int module) {
    const int most = options.max_cells > 0 ? options.max_cells : options.n_bins + 1;
    return std::min({most, options.n_bins + 1, module + 1});
}

// The row passes through single modules that a knapsack takes, converted to rows of the whole
// model.
double knapsack_rows(const PlanSearchOptions& options, int n_rows, int n_layers) {
    const int n_windows = std::min(static_cast<int>(options.windows.size()), kMaxWindows);
    double n_branches = 0;
    for (int layer = 0; layer < n_layers; ++layer) {
        n_branches += (1.0 + n_windows) * expected_cells(options, 2 * layer);
        n_branches += expected_cells(options, 2 * layer + 1);
    }
    return n_layers > 0 ? n_branches * n_rows / (2.0 * n_layers) : 0;
}

}  // namespace

std::optional<std::vector<FoundPlan>> search_plans(Forward& forward,
                                                   const Sequence& cache,
                                                   std::span<const Token> text,
                                                   int n_rows,
                                                   const CostModel& costs,
                                                   const PlanSearchOptions& options) {
    const int n_fitting = target_rows_that_fit(forward, cache, n_rows);
    if (n_fitting == 0) {
        return std::vector<FoundPlan>{};
    }
    // The streams stay on the device if the whole search fits there.
    std::size_t n_streams = 0;
    if (options.runs_knapsack) {
        const BinnedProblem binned = knapsack_problem(costs, cache.committed(), options);
        n_streams = most_states(binned.problem, options.max_cells);
    }
    TargetRows target = collect_target_rows(
        forward, cache, text,
        {.n_rows = n_fitting, .streams = options.runs_knapsack, .n_more_streams = n_streams});
    if (target.tokens.empty()) {
        return std::nullopt;
    }
    PlanSearch search(forward, cache, costs, std::move(target), options);
    while (!search.is_done()) {
        if (!search.advance()) {
            return std::nullopt;
        }
    }
    return std::vector(search.found().begin(), search.found().end());
}

double predicted_rows(const PlanSearchOptions& options, int n_rows, int n_layers) {
    const double replays = static_cast<double>(options.max_replays) * n_rows;
    return replays + (options.runs_knapsack ? knapsack_rows(options, n_rows, n_layers) : 0);
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
