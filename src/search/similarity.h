// The knapsack's states on a real model (methods 3.7): what the r most recent tokens' residual
// streams become when modules are skipped or narrowed, each way a branch of its own. All branches
// go through one module in one pass. A branch sees the committed rows before the r tokens, shared
// by all, and its own rows; nothing of it is left in the committed cache.
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

// Tracks which streams of a store the states are. The first pass that is cancelled ends the
// evaluator: no score is a number from then on.
class SimilarityEvaluator final : public KnapsackEvaluator {
  public:
    // `target` has streams, and its r rows fit the scratch rows; everything given must outlive the
    // object. `max_rows`: of one pass, but at least one branch; larger batches are cut at branches.
    // `n_states` is the most that there will be at once (most_states()), for which a device may
    // have room; 0: unknown, and they are kept in host memory.
    SimilarityEvaluator(Forward& forward,
                        const KvCache& cache,
                        const TargetRows& target,
                        int max_rows,
                        std::size_t n_states = 0);

    int n_rows() const override;
    void start(int module) override;
    void try_module(const ModuleTrial& trial) override;
    void keep(std::span<const KeptState> kept) override;

    // The head's choice for each row of a state. Empty: cancelled.
    std::vector<Token> choices(int index) const;
    bool is_cancelled() const { return is_cancelled_; }

  private:
    using Streams = std::vector<int>;  // indices into the store

    bool try_level(const LevelTrial& level, bool first_is_target, Streams& results);
    template <typename Run>
    bool in_batches(std::size_t begin, std::size_t end, Run run);
    bool run_module(const ModulePlan& plan, const StateBatch& batch);
    void replace_row(Streams next);

    Forward& forward_;
    const KvCache& cache_;
    const TargetRows& target_;
    std::unique_ptr<StateStore> store_;
    std::size_t branches_per_pass_;  // at least 1
    Streams row_;
    std::vector<Streams> tried_;  // what each level of module_ made of the row's first states
    int module_ = 0;
    bool is_cancelled_ = false;
};

}  // namespace knap
