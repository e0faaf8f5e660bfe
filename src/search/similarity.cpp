#include "search/similarity.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "graph/choices.h"
#include "graph/forward.h"
#include "kv/kv_cache.h"
#include "model/config.h"
#include "search/cosine.h"
#include "search/row_numbers.h"

namespace knap {

namespace {

using Kind = AttentionLayout::Kind;

constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

// One module at a level; the other module of its layer is skipped.
ModulePlan module_alone(int n_layers, int module, const Level& level) {
    const int layer = module / 2;
    const bool is_attention = module % 2 == 0;
    ModulePlan plan(n_layers);
    plan.set(layer, Module::attention, is_attention ? level : Level::skip);
    plan.set(layer, Module::mlp, is_attention ? Level::skip : level);
    return plan;
}

}  // namespace

int scratch_rows(const Forward& forward, const KvCache& cache) {
    const int n_free = cache.capacity() - cache.committed();
    return n_free == 0 ? 0 : std::min(n_free, forward.max_rows(cache.committed()));
}

int target_rows_that_fit(const Forward& forward, const KvCache& cache, int n_wanted) {
    return std::max(0, std::min({n_wanted, cache.committed(), scratch_rows(forward, cache)}));
}

TargetRows collect_target_rows(Forward& forward,
                               const KvCache& cache,
                               std::span<const Token> text,
                               const TargetWishes& wishes) {
    const int n_committed = cache.committed();
    const int n_rows = target_rows_that_fit(forward, cache, wishes.n_rows);
    KNAP_ASSERT(text.size() >= static_cast<std::size_t>(n_committed), "every row has a token");
    if (n_rows == 0) {
        return {};
    }
    const int first_row = n_committed - n_rows;
    const auto tokens =
        text.subspan(static_cast<std::size_t>(first_row), static_cast<std::size_t>(n_rows));
    const std::vector<int> rows = row_numbers(tokens.size());
    const std::vector<int> captures = row_numbers(
        wishes.streams ? 2 * static_cast<std::size_t>(forward.config().n_layers) + 1 : 0);
    // A branch of its own: it sees what comes before the r rows, and not the committed r rows.
    const ForwardResult result = forward.run({
        .tokens = tokens,
        .first_row = n_committed,
        .layout = {.kind = Kind::branches, .context = first_row, .branch_rows = n_rows},
        .captures = captures,
        .logit_rows = rows,
        .chooses = !wishes.logits,
    });
    if (!result.is_complete) {
        return {};
    }
    TargetRows target{.first_row = first_row, .tokens = {tokens.begin(), tokens.end()}};
    for (const std::span<const float> stream : result.captures) {
        target.streams.emplace_back(stream.begin(), stream.end());
    }
    target.choices.assign(result.choices.begin(), result.choices.end());
    if (wishes.logits) {
        append_choices(result.logits, n_rows, target.choices);
        target.logits.assign(result.logits.begin(), result.logits.end());
    }
    return target;
}

SimilarityEvaluator::SimilarityEvaluator(Forward& forward,
                                         const KvCache& cache,
                                         const TargetRows& target,
                                         int max_rows)
    : forward_(forward),
      cache_(cache),
      target_(target),
      state_size_(target.streams.empty() ? 0 : target.streams.front().size()) {
    const int n_fitting = scratch_rows(forward, cache);
    KNAP_ASSERT(state_size_ > 0, "the target has streams");
    KNAP_ASSERT(n_rows() <= n_fitting, "a branch fits the scratch rows");
    branches_per_pass_ =
        static_cast<std::size_t>(std::max(1, std::min(max_rows, n_fitting) / n_rows()));
}

int SimilarityEvaluator::n_rows() const {
    return target_.n_rows();
}

void SimilarityEvaluator::start(int module) {
    const std::span<const float> stream = target_stream(module);
    row_.assign(stream.begin(), stream.end());
}

void SimilarityEvaluator::try_module(const ModuleTrial& trial) {
    module_ = trial.module;
    tried_.resize(trial.levels.size());
    for (std::size_t i = 0; i < tried_.size() && !is_cancelled_; ++i) {
        try_level(trial, trial.levels[i], tried_[i]);
    }
    for (std::size_t i = 0; i < tried_.size(); ++i) {
        const std::span<double> scores = trial.levels[i].scores;
        for (std::size_t state = 0; state < scores.size(); ++state) {
            scores[state] =
                is_cancelled_
                    ? kNoScore
                    : score({.state = static_cast<int>(state), .level = static_cast<int>(i)});
        }
    }
}

void SimilarityEvaluator::try_level(const ModuleTrial& trial,
                                    const LevelTrial& level,
                                    TriedLevel& tried) {
    tried.is_skip = level.level == Level::skip;
    tried.first_is_target = trial.first_is_target && level.level == Level::full;
    tried.computed.clear();
    if (!tried.is_skip) {
        is_cancelled_ = !run_module(level.level, tried.first_is_target ? 1 : 0, level.scores.size(),
                                    tried.computed);
    }
}

double SimilarityEvaluator::score(const KeptState& result_at) const {
    const std::span<const float> stream = target_stream(module_ + 1);
    const std::span<const float> found = result(result_at);
    // The stream itself: no sum of rounded cosines is as exact as their number.
    return found.data() == stream.data() ? n_rows() : sum_of_cosines(found, stream, n_rows());
}

// Runs module_ on states [first, end) of the row.
bool SimilarityEvaluator::run_module(const Level& level,
                                     std::size_t first,
                                     std::size_t end,
                                     States& results) {
    const auto n_layers = static_cast<int>(target_.streams.size() / 2);
    const ModulePlan plan = module_alone(n_layers, module_, level);
    for (std::size_t begin = first; begin < end; begin += branches_per_pass_) {
        const std::size_t count = std::min(branches_per_pass_, end - begin);
        if (!run_batch(plan, std::span(row_).subspan(begin * state_size_, count * state_size_),
                       results)) {
            return false;
        }
    }
    return true;
}

bool SimilarityEvaluator::run_batch(const ModulePlan& plan,
                                    std::span<const float> states,
                                    States& results) {
    const int layer = module_ / 2;
    const int capture = module_ + 1;
    const ForwardResult result = forward_.run({
        .hidden = states,
        .plan = &plan,
        .first_row = cache_.committed(),
        .layout = {.kind = Kind::branches, .context = target_.first_row, .branch_rows = n_rows()},
        .entry_layer = layer,
        .exit_layer = layer + 1,
        .captures = std::span(&capture, 1),
    });
    if (!result.is_complete) {
        return false;
    }
    const std::span<const float> captured = result.captures.front();
    results.insert(results.end(), captured.begin(), captured.end());
    n_module_rows_ += static_cast<std::int64_t>(states.size() / state_size_) * n_rows();
    return true;
}

void SimilarityEvaluator::keep(std::span<const KeptState> kept) {
    next_row_.clear();
    for (const KeptState& one : kept) {
        const std::span<const float> state = result(one);
        next_row_.insert(next_row_.end(), state.begin(), state.end());
    }
    std::swap(row_, next_row_);
}

std::span<const float> SimilarityEvaluator::state(int index) const {
    return state_of(row_, static_cast<std::size_t>(index));
}

std::span<const float> SimilarityEvaluator::target_stream(int module) const {
    return target_.streams[static_cast<std::size_t>(module)];
}

std::span<const float> SimilarityEvaluator::state_of(const States& states,
                                                     std::size_t index) const {
    return std::span(states).subspan(index * state_size_, state_size_);
}

std::span<const float> SimilarityEvaluator::result(const KeptState& kept) const {
    const TriedLevel& tried = tried_[static_cast<std::size_t>(kept.level)];
    const auto state = static_cast<std::size_t>(kept.state);
    if (tried.is_skip) {
        return state_of(row_, state);
    }
    if (!tried.first_is_target) {
        return state_of(tried.computed, state);
    }
    return state == 0 ? target_stream(module_ + 1) : state_of(tried.computed, state - 1);
}

}  // namespace knap
