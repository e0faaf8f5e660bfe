// Models of a few numbers behind the knapsack's evaluator. Tests of the search can try every plan
// and inspect every state.
#pragma once

#include <functional>
#include <vector>

#include "forward/module_plan.h"
#include "search/knapsack.h"

namespace knap::test {

using FakeState = std::vector<double>;

struct FakeModel {
    int n_layers = 0;
    int n_rows = 1;
    std::vector<FakeState> target{};  // [2L + 1] X: the stream before each module, and at the end
    // Runs a module at a level other than `skip`.
    std::function<FakeState(int module, const Level& level, const FakeState& state)> run{};
    // Scores a state before module `module` against X[module].
    std::function<double(int module, const FakeState& state)> score{};

    int n_modules() const { return 2 * n_layers; }
    FakeState run_or_skip(int module, const Level& level, const FakeState& state) const;
    // The final state of the plan from X[0].
    FakeState run_plan(const ModulePlan& plan) const;
};

// Every module adds its own gain, a window a part of it, and the score is the total gain. Then the
// best state of each cell is a prefix of the best plan, so the knapsack is exact. Gains are small
// integers, which makes sums exact and ties common.
FakeModel additive_model(unsigned seed, int n_layers);

// A residual stream of n_rows rows, scored by cosines. What a module adds depends on everything
// added before, and attention lets a row read those before it. So no table of single states is
// exact here.
FakeModel residual_model(unsigned seed, int n_layers, int n_rows = 3);

// The total that the levels of a plan save.
int saved_by(const KnapsackProblem& problem, const ModulePlan& plan);

// Counts its states, and checks that it is called as KnapsackEvaluator requires.
class FakeEvaluator : public KnapsackEvaluator {
  public:
    explicit FakeEvaluator(const FakeModel& model) : model_(model) {}
    // Receives every score before the search does, and may replace it.
    std::function<double(int module, int state, const Level& level, double score)> spoil{};
    // Whether a trial is cancelled, before it computes anything.
    std::function<bool(int module)> cancels{};

    int n_rows() const override { return model_.n_rows; }
    void start(int module) override;
    bool try_module(const ModuleTrial& trial) override;
    void keep(std::span<const KeptState> kept) override;

    const std::vector<FakeState>& row() const { return row_; }
    std::vector<int> modules_tried() const { return modules_tried_; }
    int n_computed() const { return n_computed_; }
    int n_live() const;  // states currently held
    int max_live() const { return max_live_; }

  private:
    FakeState result(const KeptState& kept) const;
    void try_level(const ModuleTrial& trial, const LevelTrial& level);

    const FakeModel& model_;
    std::vector<FakeState> row_;
    std::vector<Level> levels_;                    // of the last trial
    std::vector<std::vector<FakeState>> results_;  // [levels][states]; empty for `skip`
    int module_ = 0;                               // the module that row_ is before
    std::vector<int> modules_tried_;
    int n_computed_ = 0;
    int max_live_ = 0;
};

}  // namespace knap::test
