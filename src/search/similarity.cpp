#include "search/similarity.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "kv/sequence.h"
#include "model/config.h"

namespace knap {

namespace {

// One module at `level`; the other module of its layer is skipped.
ModulePlan module_alone(int n_layers, int module, const Level& level) {
    const int layer = module / 2;
    const bool is_attention = module % 2 == 0;
    ModulePlan plan(n_layers);
    plan.set(layer, Module::attention, is_attention ? level : Level::skip);
    plan.set(layer, Module::mlp, is_attention ? Level::skip : level);
    return plan;
}

}  // namespace

SimilarityEvaluator::SimilarityEvaluator(Forward& forward,
                                         const Sequence& cache,
                                         const TargetRows& target,
                                         int max_rows,
                                         std::size_t n_states)
    : forward_(forward),
      cache_(cache),
      target_(target),
      store_(make_state_store(forward, target, n_states)),
      max_rows_(max_rows) {}

int SimilarityEvaluator::n_rows() const {
    return target_.n_rows();
}

void SimilarityEvaluator::start(int module) {
    replace_row({module});
}

bool SimilarityEvaluator::try_module(const ModuleTrial& trial) {
    module_ = trial.module;
    is_cancelled_ = false;
    replace_row(row_);  // drops earlier trials
    tried_.resize(trial.levels.size());
    for (std::size_t i = 0; i < tried_.size() && !is_cancelled_; ++i) {
        const LevelTrial& level = trial.levels[i];
        const bool first_is_target = trial.first_is_target && level.level == Level::full;
        is_cancelled_ = !try_level(level, first_is_target, tried_[i]);
    }
    return !is_cancelled_;
}

// Tries `level` on the first states of the row, as many as there are scores. Returns false when
// cancelled.
bool SimilarityEvaluator::try_level(const LevelTrial& level,
                                    bool first_is_target,
                                    Streams& results) {
    const std::size_t n_states = level.scores.size();
    results.assign(row_.begin(), row_.begin() + static_cast<std::ptrdiff_t>(n_states));
    if (level.level == Level::skip) {
        return in_batches(0, n_states, [&](std::size_t first, std::size_t count) {
            return store_->compare(std::span(results).subspan(first, count), module_ + 1,
                                   level.scores.subspan(first, count));
        });
    }
    const std::size_t n_known = first_is_target ? 1 : 0;
    if (first_is_target) {
        results.front() = module_ + 1;
        // Exactly n_rows: a sum of computed cosines would be off by rounding.
        level.scores.front() = n_rows();
    }
    std::ranges::generate(std::span(results).subspan(n_known),
                          [this] { return store_->allocate(); });
    const ModulePlan plan = module_alone(forward_.config().n_layers, module_, level.level);
    return in_batches(n_known, n_states, [&](std::size_t first, std::size_t count) {
        return run_module(plan, {.from = std::span(row_).subspan(first, count),
                                 .to = std::span(results).subspan(first, count),
                                 .target = module_ + 1,
                                 .scores = level.scores.subspan(first, count)});
    });
}

std::size_t SimilarityEvaluator::branches_per_pass() const {
    const int n_fitting = scratch_rows(forward_, cache_);
    KNAP_ASSERT(n_rows() <= n_fitting, "a branch fits the scratch rows");
    return static_cast<std::size_t>(std::max(1, std::min(max_rows_, n_fitting) / n_rows()));
}

// Calls run(first, count) for the states [begin, end), as many at a time as fit a pass. Returns
// false when cancelled.
template <typename Run>
bool SimilarityEvaluator::in_batches(std::size_t begin, std::size_t end, Run run) {
    const std::size_t n_most = branches_per_pass();
    for (std::size_t first = begin; first < end; first += n_most) {
        if (!run(first, std::min(n_most, end - first))) {
            return false;
        }
    }
    return true;
}

bool SimilarityEvaluator::run_module(const ModulePlan& plan, const StateBatch& batch) {
    const int layer = module_ / 2;
    const int capture = module_ + 1;
    const ForwardRequest request = {
        .plan = &plan,
        .first_row = cache_.committed(),
        .layout = {.kind = AttentionLayout::Kind::branches,
                   .context = target_.first_row,
                   .branch_rows = n_rows()},
        .entry_layer = layer,
        .exit_layer = layer + 1,
        .captures = std::span(&capture, 1),
        .kind = PassKind::search,
    };
    return store_->run(request, batch);
}

void SimilarityEvaluator::keep(std::span<const KeptState> kept) {
    Streams next;
    for (const KeptState& one : kept) {
        next.push_back(
            tried_[static_cast<std::size_t>(one.level)][static_cast<std::size_t>(one.state)]);
    }
    replace_row(std::move(next));
}

// Releases every stream that is not in the next row.
void SimilarityEvaluator::replace_row(Streams next) {
    Streams before = std::exchange(row_, std::move(next));
    for (const Streams& results : tried_) {
        before.insert(before.end(), results.begin(), results.end());
    }
    tried_.clear();
    std::ranges::sort(before);
    before.erase(std::unique(before.begin(), before.end()), before.end());
    for (const int stream : before) {
        if (std::ranges::find(row_, stream) == row_.end()) {
            store_->release(stream);
        }
    }
}

std::vector<Token> SimilarityEvaluator::choices(int index) const {
    return store_->choices(row_[static_cast<std::size_t>(index)]);
}

}  // namespace knap
