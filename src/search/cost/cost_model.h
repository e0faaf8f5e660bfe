// What a pass costs on this machine, as measured: a draft step of any plan, a verification of any
// number of rows, at any context (methods 3.2, 3.15 O1).
//
// The time of a pass of one row is a sum over what it runs: a fixed cost, the head, every attention
// and MLP by the class of its layer, and every cache row that attention reads. Further rows make
// weights and cache rows dearer, each by a measured factor. The parts are fitted to the times of
// whole passes, so that what a part costs in company is what counts, not what it costs alone.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/module_plan.h"
#include "search/cost/cost_fit.h"
#include "search/cost/cost_profile.h"
#include "search/module_weights.h"
#include "search/throughput.h"

namespace knap {

// How well the fitted parts give back what was measured.
struct FitQuality {
    int n_samples = 0;        // that were plausible
    double median_error = 0;  // |predicted / measured - 1|
    double worst_error = 0;

    // Times that other programs stretched fit no model: to plan with them is worse than to plan
    // with none.
    bool is_usable() const { return median_error <= 0.2; }
};

// All times are finite and positive. A reduced head is priced by its share of the whole one's rows.
class CostModel {
  public:
    // Fits the samples. Parts that they say nothing of follow from the others by their weights' and
    // cache rows' bytes as far as the samples hold a pass of the whole model; at least one such
    // pass of one row is needed (KNAP_ASSERT; can_fit() says whether there is one).
    explicit CostModel(const CostProfile& profile);

    int n_layers() const { return static_cast<int>(layer_classes_.size()); }
    // All rows have logits.
    double pass_ms(const ModulePlan& plan, int n_context, int n_rows) const;
    double draft_step_ms(const ModulePlan& plan, int n_context) const;
    double verify_ms(int n_rows, int n_context) const;  // the whole model
    double plain_step_ms(int n_context) const { return verify_ms(1, n_context); }
    // [g]: the whole model over the pending token and g drafts.
    std::vector<double> verify_times_ms(int n_context, int max_length) const;
    // Drafting with `plan` up to `max_length` tokens, and verifying them. Leading layers that the
    // plan leaves whole are computed again for the last draft alone, from which nothing was drafted
    // (methods 3.15, O13).
    RoundCost round_cost(const ModulePlan& plan, int n_context, int max_length) const;

    // c2 * n + c3 and c1 of the paper, means over the layers.
    KindTimes kind_times(int n_context) const;
    double head_ms() const { return parts_.head_ms; }
    double fixed_ms() const { return parts_.fixed_ms; }
    double attention_ms(int layer, const Level& level, int n_context) const;  // 0 when skipped
    double mlp_ms(int layer) const;
    // [2L] for binned_problem(): every attention at full, at each of `windows` that is shorter than
    // the context, or skipped; every MLP at full or skipped. Dearer levels come first.
    std::vector<ModuleTimes> module_times(int n_context, std::span<const Window> windows) const;

    const FitQuality& quality() const { return quality_; }
    // How well it gives back these times, of which at least one is plausible.
    FitQuality quality_on(std::span<const CostSample> samples) const;
    // Whether passes of several rows were measured; where not, rows are priced as whole passes, so
    // that nobody speculates on hope.
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

    std::vector<int> layer_classes_;
    double reduced_head_;  // of the whole head
    ModulePlan full_plan_;
    CostParts parts_;
    std::vector<RowFactors> rows_;
    FitQuality quality_;
};

}  // namespace knap
