// The knapsack's states on a real model (methods 3.7): what the r most recent tokens' residual
// streams become when modules are skipped or narrowed, each way a branch of its own. All branches
// go through one module in one pass. A branch sees the committed rows before the r tokens, shared
// by all, and its own rows; nothing of it is left in the committed cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "knap/types.h"

#include "search/knapsack.h"

namespace knap {

class Forward;
class KvCache;

// The r most recent committed tokens as the whole model sees them.
struct TargetRows {
    int first_row = 0;                          // cache row (and position) of the first of them
    std::vector<Token> tokens{};                // [r]
    std::vector<std::vector<float>> streams{};  // [2L + 1] X[i]: f32 [n_embd, r]; or empty
    std::vector<float> logits{};                // [n_vocab, r]; or empty
    std::vector<Token> choices{};               // [r] argmax of the logits

    int n_rows() const { return static_cast<int>(tokens.size()); }
};

struct TargetWishes {
    int n_rows = 0;        // r, as far as target_rows_that_fit()
    bool streams = false;  // for the knapsack
    bool logits = false;   // for acceptance under sampling
};

// Rows that one pass can hold above the committed ones.
int scratch_rows(const Forward& forward, const KvCache& cache);
// r: so many of the `n_wanted` rows are committed and fit one pass of scratch rows.
int target_rows_that_fit(const Forward& forward, const KvCache& cache, int n_wanted);

// Computes them anew, with the whole model, in scratch rows. `text` begins with the committed rows'
// tokens. A result without tokens: cancelled, or no row fits.
TargetRows collect_target_rows(Forward& forward,
                               const KvCache& cache,
                               std::span<const Token> text,
                               const TargetWishes& wishes);

// States lie one behind the other in the order of their numbers, so that those that a level is
// tried on are the hidden rows of a pass as they are. The first pass that is cancelled ends the
// evaluator: no score is a number from then on.
class SimilarityEvaluator final : public KnapsackEvaluator {
  public:
    // `target` has streams, and its r rows fit the scratch rows; everything given must outlive the
    // object. `max_rows`: of one pass, but at least one branch; larger batches are cut at branches.
    SimilarityEvaluator(Forward& forward,
                        const KvCache& cache,
                        const TargetRows& target,
                        int max_rows);

    int n_rows() const override;
    void start(int module) override;
    void try_module(const ModuleTrial& trial) override;
    void keep(std::span<const KeptState> kept) override;

    // [n_embd, r] of a state of the present row.
    std::span<const float> state(int index) const;
    bool is_cancelled() const { return is_cancelled_; }
    // Rows that went through a module so far: what a search costs.
    std::int64_t n_module_rows() const { return n_module_rows_; }

  private:
    using States = std::vector<float>;  // [n_embd, r, number of states]

    // What a level made of the row's states.
    struct TriedLevel {
        bool is_skip = false;          // of `skip` nothing: its results are the states themselves
        bool first_is_target = false;  // of state 0 nothing: its result is X[module + 1]
        States computed{};             // of the states behind
    };

    std::span<const float> target_stream(int module) const;
    std::span<const float> state_of(const States& states, std::size_t index) const;
    std::span<const float> result(const KeptState& kept) const;
    void try_level(const ModuleTrial& trial, const LevelTrial& level, TriedLevel& tried);
    double score(const KeptState& result_at) const;
    bool run_module(const Level& level, std::size_t first, std::size_t end, States& results);
    bool run_batch(const ModulePlan& plan, std::span<const float> states, States& results);

    Forward& forward_;
    const KvCache& cache_;
    const TargetRows& target_;
    std::size_t state_size_;         // n_embd * r
    std::size_t branches_per_pass_;  // at least 1
    States row_;
    States next_row_;                // kept for its memory
    std::vector<TriedLevel> tried_;  // of module_, by level
    int module_ = 0;
    bool is_cancelled_ = false;
    std::int64_t n_module_rows_ = 0;
};

}  // namespace knap
