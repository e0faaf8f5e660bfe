#include "search/knapsack.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "base/error.h"

namespace knap {

namespace {

constexpr double kEmpty = -std::numeric_limits<double>::infinity();

struct Cell {
    double score = kEmpty;   // sum of cosines
    int saved = 0;           // j
    int state = 0;           // index of its parent in the previous row
    int level = 0;           // level at which the module ran on it
    bool is_target = false;  // every module so far is at `full`
};

// How a cell was reached (docs/methods.md, "Backtracking").
struct Parent {
    int saved = 0;
    int level = 0;
};

// The levels of a module, `full` first, then by what they save. In this order, the first of equal
// scores saves least.
std::vector<LevelChoice> ordered_levels(const KnapsackItem& item) {
    std::vector<LevelChoice> levels = {{.level = Level::full, .saved = 0}};
    levels.insert(levels.end(), item.cheaper.begin(), item.cheaper.end());
    std::ranges::stable_sort(levels, {}, &LevelChoice::saved);
    KNAP_ASSERT(levels.front().saved == 0, "no level is slower than full");
    return levels;
}

bool starts_after_forced(const KnapsackProblem& problem) {
    const auto n_before = static_cast<std::size_t>(problem.first_module);
    return n_before <= problem.items.size() &&
           std::ranges::all_of(std::span(problem.items).first(n_before),
                               [](const KnapsackItem& item) { return item.cheaper.empty(); });
}

std::vector<Cell> without_empty(std::span<const Cell> cells) {
    std::vector<Cell> row;
    std::ranges::copy_if(cells, std::back_inserter(row),
                         [](const Cell& cell) { return cell.score != kEmpty; });
    return row;
}

// `row` is ordered by saved weight, so a cell is dominated only by later ones.
void erase_dominated(std::vector<Cell>& row) {
    double best = kEmpty;
    const auto is_dominated = [&best](const Cell& cell) {
        best = std::max(best, cell.score);
        return cell.score < best;
    };
    std::ranges::reverse(row);
    std::erase_if(row, is_dominated);
    std::ranges::reverse(row);
}

// The weights up to the budget that the modules so far and `item` can save in total.
std::vector<bool> add_savings(const std::vector<bool>& reachable, const KnapsackItem& item) {
    std::vector<bool> next = reachable;
    for (const LevelChoice& choice : item.cheaper) {
        for (auto saved = static_cast<std::size_t>(choice.saved); saved < next.size(); ++saved) {
            next[saved] = next[saved] || reachable[saved - static_cast<std::size_t>(choice.saved)];
        }
    }
    return next;
}

// Levels that need computation: at `skip` the result is the state itself.
std::ptrdiff_t count_run_levels(const KnapsackItem& item) {
    return 1 + std::ranges::count_if(item.cheaper, [](const LevelChoice& choice) {
               return choice.level != Level::skip;
           });
}

}  // namespace

class KnapsackSearch::Table {
  public:
    Table(KnapsackProblem problem, KnapsackOptions options, KnapsackEvaluator& evaluator);

    bool is_done() const { return row_.empty() || module_ == n_modules(); }
    std::size_t n_next_states() const;
    bool advance();
    std::vector<KnapsackCandidate> candidates();

  private:
    int n_modules() const { return static_cast<int>(problem_.items.size()); }
    std::size_t n_cells() const { return static_cast<std::size_t>(problem_.budget) + 1; }
    Parent& parent(int module, int saved) {
        return parents_[static_cast<std::size_t>(module) * n_cells() +
                        static_cast<std::size_t>(saved)];
    }

    double mean_cosine(double score) const { return score / evaluator_.n_rows(); }

    std::size_t n_affordable(int saved) const;
    bool knows_first() const { return options_.reuse_target && row_.front().is_target; }
    bool try_levels();
    std::vector<Cell> next_row() const;
    bool survives(double score) const;
    bool beats(double score, double held) const;
    void cap(std::vector<Cell>& row) const;
    double rank(const Cell& cell) const;
    void move_on(std::vector<Cell> row);
    ModulePlan plan_of(int saved);

    KnapsackProblem problem_;
    KnapsackOptions options_;
    KnapsackEvaluator& evaluator_;
    std::vector<std::vector<LevelChoice>> levels_;  // [2L]
    std::vector<Parent> parents_;                   // [2L, B + 1]
    std::vector<Cell> row_;                         // occupied cells, by saved weight
    int module_;                                    // the next one
    // For the module being tried: its affordable levels, and the scores of each on the first
    // states.
    std::span<const LevelChoice> tried_;
    std::vector<std::vector<double>> scores_;  // [tried levels][states]
};

KnapsackSearch::Table::Table(KnapsackProblem problem,
                             KnapsackOptions options,
                             KnapsackEvaluator& evaluator)
    : problem_(std::move(problem)),
      options_(std::move(options)),
      evaluator_(evaluator),
      module_(problem_.first_module) {
    KNAP_ASSERT(n_modules() % 2 == 0, "a layer has two modules");
    KNAP_ASSERT(problem_.budget >= 0, "a budget is a weight");
    KNAP_ASSERT(starts_after_forced(problem_), "what the search leaves out can only be full");
    KNAP_ASSERT(evaluator.n_rows() > 0, "a mean needs rows");
    KNAP_ASSERT(options_.max_cells == 0 || options_.rank, "a limit needs a rank to choose by");
    for (const KnapsackItem& item : problem_.items) {
        levels_.push_back(ordered_levels(item));
    }
    parents_.resize(problem_.items.size() * n_cells());
    evaluator_.start(module_);
    row_ = {{.score = static_cast<double>(evaluator_.n_rows()), .is_target = true}};
}

std::vector<KnapsackCandidate> KnapsackSearch::Table::candidates() {
    KNAP_ASSERT(is_done(), "a search has candidates when it is done");
    std::vector<KnapsackCandidate> candidates;
    for (const Cell& cell : row_) {
        candidates.push_back({.plan = plan_of(cell.saved), .score = cell.score});
    }
    return candidates;
}

// Advances the table to the row after the next module.
bool KnapsackSearch::Table::advance() {
    KNAP_ASSERT(!is_done(), "a module is left");
    if (!try_levels()) {
        return false;
    }
    std::vector<Cell> row = next_row();
    if (options_.drop_dominated) {
        erase_dominated(row);
    }
    if (options_.max_cells > 0) {
        cap(row);
    }
    move_on(std::move(row));
    return true;
}

std::size_t KnapsackSearch::Table::n_next_states() const {
    std::size_t n_states = 0;
    for (const LevelChoice& choice : levels_[static_cast<std::size_t>(module_)]) {
        n_states += choice.level == Level::skip ? 0 : n_affordable(choice.saved);
    }
    return n_states - (knows_first() ? 1 : 0);
}

// The number of leading cells that can save this much more within the budget.
std::size_t KnapsackSearch::Table::n_affordable(int saved) const {
    const int room = problem_.budget - saved;
    const auto end = std::ranges::upper_bound(row_, room, {}, &Cell::saved);
    return static_cast<std::size_t>(end - row_.begin());
}

bool KnapsackSearch::Table::try_levels() {
    const std::vector<LevelChoice>& levels = levels_[static_cast<std::size_t>(module_)];
    std::vector<LevelTrial> trials;
    scores_.clear();
    for (const LevelChoice& choice : levels) {
        const std::size_t n_states = n_affordable(choice.saved);
        if (n_states == 0) {
            break;  // later levels save at least as much
        }
        std::vector<double>& scores = scores_.emplace_back(n_states);
        trials.push_back({.level = choice.level, .scores = scores});
    }
    tried_ = std::span(levels).first(trials.size());
    return evaluator_.try_module(
        {.module = module_, .levels = trials, .first_is_target = knows_first()});
}

// Each result competes for the cell of its total saved weight.
std::vector<Cell> KnapsackSearch::Table::next_row() const {
    std::vector<Cell> cells(n_cells());
    for (std::size_t level = 0; level < tried_.size(); ++level) {
        for (std::size_t state = 0; state < scores_[level].size(); ++state) {
            const double score = scores_[level][state];
            const int saved = row_[state].saved + tried_[level].saved;
            Cell& held = cells[static_cast<std::size_t>(saved)];
            if (survives(score) && beats(score, held.score)) {
                held = {
                    .score = score,
                    .saved = saved,
                    .state = static_cast<int>(state),
                    .level = static_cast<int>(level),
                    .is_target = row_[state].is_target && level == 0,
                };
            }
        }
    }
    return without_empty(cells);
}

bool KnapsackSearch::Table::survives(double score) const {
    const double mean = mean_cosine(score);
    return std::isfinite(score) &&
           (options_.strict_threshold ? mean > options_.min_cosine : mean >= options_.min_cosine);
}

bool KnapsackSearch::Table::beats(double score, double held) const {
    return options_.skip_wins_ties ? score >= held : score > held;
}

void KnapsackSearch::Table::cap(std::vector<Cell>& row) const {
    const auto max_cells = static_cast<std::size_t>(options_.max_cells);
    if (row.size() <= max_cells) {
        return;
    }
    const auto outranks = [this](const Cell& a, const Cell& b) { return rank(a) > rank(b); };
    std::ranges::stable_sort(row, outranks);
    row.resize(max_cells);
    std::ranges::sort(row, {}, &Cell::saved);
}

double KnapsackSearch::Table::rank(const Cell& cell) const {
    const double value = options_.rank(cell.saved, mean_cosine(cell.score));
    if (std::isnan(value)) {
        return kEmpty;  // NaN cannot be ordered
    }
    return value;
}

void KnapsackSearch::Table::move_on(std::vector<Cell> row) {
    std::vector<KeptState> kept;
    for (const Cell& cell : row) {
        const int previous = row_[static_cast<std::size_t>(cell.state)].saved;
        parent(module_, cell.saved) = {.saved = previous, .level = cell.level};
        kept.push_back({.state = cell.state, .level = cell.level});
    }
    evaluator_.keep(kept);
    row_ = std::move(row);
    ++module_;
}

// Follows the parents back from a cell of the last row.
ModulePlan KnapsackSearch::Table::plan_of(int saved) {
    ModulePlan plan(n_modules() / 2);
    for (int module = n_modules() - 1; module >= problem_.first_module; --module) {
        const Parent& from = parent(module, saved);
        const auto& levels = levels_[static_cast<std::size_t>(module)];
        plan.set(module / 2, module % 2 == 0 ? Module::attention : Module::mlp,
                 levels[static_cast<std::size_t>(from.level)].level);
        saved = from.saved;
    }
    return plan;
}

std::size_t most_states(const KnapsackProblem& problem, int max_cells) {
    std::vector<bool> reachable(static_cast<std::size_t>(problem.budget) + 1);
    reachable[0] = true;
    std::ptrdiff_t most = 1;
    for (const KnapsackItem& item : problem.items) {
        const std::ptrdiff_t n_cells = std::ranges::count(reachable, true);
        const std::ptrdiff_t n_kept =
            max_cells > 0 ? std::min<std::ptrdiff_t>(n_cells, max_cells) : n_cells;
        most = std::max(most, n_kept * (1 + count_run_levels(item)));
        reachable = add_savings(reachable, item);
    }
    return static_cast<std::size_t>(most);
}

KnapsackSearch::KnapsackSearch(KnapsackProblem problem,
                               KnapsackOptions options,
                               KnapsackEvaluator& evaluator)
    : table_(std::make_unique<Table>(std::move(problem), std::move(options), evaluator)) {}

KnapsackSearch::~KnapsackSearch() = default;

bool KnapsackSearch::is_done() const {
    return table_->is_done();
}

std::size_t KnapsackSearch::n_next_states() const {
    return table_->n_next_states();
}

bool KnapsackSearch::advance() {
    return table_->advance();
}

std::vector<KnapsackCandidate> KnapsackSearch::candidates() {
    return table_->candidates();
}

std::vector<KnapsackCandidate> solve_knapsack(const KnapsackProblem& problem,
                                              const KnapsackOptions& options,
                                              KnapsackEvaluator& evaluator) {
    KnapsackSearch search(problem, options, evaluator);
    while (!search.is_done()) {
        if (!search.advance()) {
            return {};
        }
    }
    return search.candidates();
}

}  // namespace knap
