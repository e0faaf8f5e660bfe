// Predicts the time of a pass on this machine from measurements: a draft step of any plan, or a
// verification of any number of rows, at any context (docs/methods.md, "Measured costs").
//
// The time of a pass of one row is a sum: a fixed cost, the head, every attention and MLP by the
// class of its layer, and every cache row that attention reads. More rows multiply the cost of
// weights and of cache rows, each by a measured factor. The parts are fitted to the times of whole
// passes, because what matters is the cost of a part within a pass, not on its own.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "forward/module_plan.h"
#include "search/cost/cost_fit.h"
#include "search/cost/cost_profile.h"
#include "search/module_weights.h"
#include "search/throughput.h"

namespace knap {

// How well the fitted parts reproduce the measurements.
struct FitQuality {
    int n_samples = 0;        // plausible ones
    double median_error = 0;  // |predicted / measured - 1|
    double worst_error = 0;

    // False if the times were disturbed by other programs: planning with such costs is worse than
    // planning without any.
    bool is_usable() const { return median_error <= 0.2; }
};

// All times are finite and positive. A reduced head is priced by its share of the whole head.
class CostModel {
  public:
    // Fits the samples, which must include at least one pass of one row through the whole model
    // (KNAP_ASSERT; see can_fit()). The times of parts that the samples say nothing about follow
    // from the bytes that they read.
    explicit CostModel(const CostProfile& profile);

    int n_layers() const { return static_cast<int>(layer_classes_.size()); }
    // All passes have logits for every row.
    double pass_ms(const ModulePlan& plan, int n_context, int n_rows) const;
    double draft_step_ms(const ModulePlan& plan, int n_context) const;
    double verify_ms(int n_rows, int n_context) const;  // the whole model
    double plain_step_ms(int n_context) const { return verify_ms(1, n_context); }
    // [g] the whole model over the pending token, g drafts and `n_others` rows of other sessions.
    std::vector<double> verify_times_ms(int n_context, int max_length, int n_others = 0) const;
    // The cost of drafting up to `max_length` tokens with `plan` and of verifying them. The
    // verification runs the leading layers that the plan leaves whole only for the last draft
    // (docs/methods.md, "Exact leading layers").
    RoundCost round_cost(const ModulePlan& plan,
                         int n_context,
                         int max_length,
                         int n_others = 0) const;

    // c2 * n + c3 and c1 of the paper, as means over the layers.
    KindTimes kind_times(int n_context) const;
    double head_ms() const { return parts_.head_ms; }
    double fixed_ms() const { return parts_.fixed_ms; }
    double attention_ms(int layer, const Level& level, int n_context) const;  // 0 when skipped
    double mlp_ms(int layer, const Level& level = Level::full) const;         // 0 when skipped
    // [2L] for binned_problem(): every attention at `full`, at each of `windows` that is shorter
    // than the context, and skipped; every MLP at `full`, with half of its experts if it has some,
    // and skipped. More expensive levels come first.
    std::vector<ModuleTimes> module_times(int n_context, std::span<const Window> windows) const;

    const FitQuality& quality() const { return quality_; }
    // The quality of the fit on other samples, at least one of which must be plausible.
    FitQuality quality_on(std::span<const CostSample> samples) const;
    // True if passes of several rows were measured. Otherwise each row is priced as a pass of its
    // own, so that speculation is not expected to pay.
    bool knows_rows() const { return !rows_.empty(); }

  private:
    struct Pass {
        const ModulePlan& plan;
        int n_context;
        int n_rows;
        bool has_head;
    };
    double predicted_ms(const Pass& pass) const;
    double heads_of(const Pass& pass) const;
    std::size_t class_of(int layer) const;

    LayerKinds layers() const { return {layer_classes_, layer_windows_, expert_shares_}; }

    std::vector<int> layer_classes_;
    std::vector<int> layer_windows_;
    std::vector<ExpertShare> expert_shares_;
    double reduced_head_;  // share of the whole head
    ModulePlan full_plan_;
    CostParts parts_;
    std::vector<RowFactors> rows_;
    FitQuality quality_;
};

}  // namespace knap
