// Counts the work that a search gives to another evaluator.
#pragma once

#include <cstdint>
#include <vector>

#include "search/knapsack.h"

namespace knap::test {

class CountingEvaluator final : public KnapsackEvaluator {
  public:
    explicit CountingEvaluator(KnapsackEvaluator& counted) : counted_(counted) {}

    int n_rows() const override { return counted_.n_rows(); }
    void start(int module) override { counted_.start(module); }
    void keep(std::span<const KeptState> kept) override { counted_.keep(kept); }
    bool try_module(const ModuleTrial& trial) override;

    // The number of rows that have to run through modules.
    std::int64_t n_module_rows() const;
    // The number of passes for them, with at most `states_per_pass` states each.
    std::int64_t n_passes(int states_per_pass) const;

  private:
    KnapsackEvaluator& counted_;
    std::vector<std::int64_t> batches_;  // states per module and level
};

}  // namespace knap::test
