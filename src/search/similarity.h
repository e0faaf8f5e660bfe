// Computes the knapsack's states on the model (docs/methods.md, "Branch attention"): the residual
// streams of the r most recent tokens after some modules were skipped or narrowed, one branch per
// state. All branches go through a module in one pass. A branch attends to the committed rows
// before the r tokens, which all branches share, and to its own rows. Nothing of it remains in the
// committed cache.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "knap/types.h"

#include "search/knapsack.h"
#include "search/state_store.h"
#include "search/target_rows.h"

namespace knap {

// Maps the states of the row to streams of a store.
class SimilarityEvaluator final : public KnapsackEvaluator {
  public:
    // `target` must have streams, and its r rows must fit the scratch rows. All arguments must
    // outlive the object. `max_rows` limits the rows of a pass, but a pass has at least one branch;
    // larger batches are split between branches. `n_states` is the largest number of states held at
    // once (most_states()), for which a device may have room; 0: unknown, the states are kept in
    // host memory. The text may grow between trials; the rows before the target's must stay.
    SimilarityEvaluator(Forward& forward,
                        const Sequence& cache,
                        const TargetRows& target,
                        int max_rows,
                        std::size_t n_states = 0);

    int n_rows() const override;
    void start(int module) override;
    bool try_module(const ModuleTrial& trial) override;
    void keep(std::span<const KeptState> kept) override;

    // The head's argmax for each row of a state. Empty when cancelled.
    std::vector<Token> choices(int index) const;
    bool is_cancelled() const { return is_cancelled_; }  // the last trial

  private:
    using Streams = std::vector<int>;  // indices into the store

    bool try_level(const LevelTrial& level, bool first_is_target, Streams& results);
    std::size_t branches_per_pass() const;
    template <typename Run>
    bool in_batches(std::size_t begin, std::size_t end, Run run);
    bool run_module(const ModulePlan& plan, const StateBatch& batch);
    void replace_row(Streams next);

    Forward& forward_;
    const Sequence& cache_;
    const TargetRows& target_;
    std::unique_ptr<StateStore> store_;
    int max_rows_;
    Streams row_;
    std::vector<Streams> tried_;  // results of module_ on the row's first states, per level
    int module_ = 0;
    bool is_cancelled_ = false;
};

}  // namespace knap
