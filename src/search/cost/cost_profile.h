// Measured times of passes on one machine, the data that a CostModel is fitted to.
#pragma once

#include <span>
#include <vector>

#include "forward/module_plan.h"
#include "forward/plan_cost.h"

namespace knap {

// A measured pass. All its rows follow `n_context` committed rows, and all have logits if it has a
// head.
struct CostSample {
    ModulePlan plan;
    int n_context = 0;
    int n_rows = 1;
    bool has_head = true;
    double ms = 0;         // median
    double spread_ms = 0;  // half the interquartile range
    int n_measured = 1;
    bool was_busy = false;  // other programs took cores away meanwhile
};

// The bytes that the parts of a pass read: a guess of their times, for parts that the samples leave
// open. All zero: unknown.
struct PartBytes {
    std::vector<double> attention{};  // [class] weights of one attention
    std::vector<double> mlp{};        // [class] weights of one MLP, for one row
    double head = 0;
    double reduced_head = 0;
    double cache_row = 0;  // one attention's: a row of keys and one of values

    double reduced_share() const;  // of a reduced head in the whole one; 1: unknown
};

// How much of an MLP a pass reads, which in layers with experts depends on its rows and its plan.
struct ExpertShare {
    double share = 0;  // of the bytes that a row reads in an MLP, those of its experts; 0: none
    ExpertCost experts{};

    // What `n_rows` rows read, relative to one row of the whole model, if each uses `n_allowed`
    // experts (0: as many as in the whole model).
    double relative(int n_allowed, int n_rows) const;
};

// What the cost of a layer depends on: views of a CostProfile.
struct LayerKinds {
    std::span<const int> classes;
    std::span<const int> windows;
    std::span<const ExpertShare> expert_shares{};

    // Of one class.
    ExpertShare expert_share(std::size_t c) const {
        return expert_shares.empty() ? ExpertShare{} : expert_shares[c];
    }

    int window(int layer) const {
        return windows.empty() ? 0 : windows[static_cast<std::size_t>(layer)];
    }
};

// All measurements of one model on one machine.
struct CostProfile {
    // [n_layers] Layers of one class have matrices of the same types and shapes, and cost the same.
    std::vector<int> layer_classes{};
    // [n_layers] The positions that attention sees at most; 0: all. Empty: all in every layer.
    std::vector<int> layer_windows{};
    std::vector<ExpertShare> expert_shares{};  // [class]; empty: no layer has experts
    std::vector<CostSample> samples{};
    PartBytes bytes{};
    bool is_partial = false;  // measured while decoding: some passes may be missing

    // The share of the whole head that a pass runs: 1, the share of a reduced head, or 0.
    double heads(const ModulePlan& plan, bool has_head) const;
    int n_layers() const { return static_cast<int>(layer_classes.size()); }
    LayerKinds kinds() const { return {layer_classes, layer_windows, expert_shares}; }
    int n_classes() const;
};

// A profile without samples. The bytes of a class are those of its first layer.
CostProfile empty_profile(const ModelCost& model, std::vector<int> layer_classes);

// True if the sample is of a model with `n_layers` layers and has a possible time. Profiles may
// come from files, so samples need this check.
bool is_plausible(const CostSample& sample, int n_layers);
// True if it is also a step of plain decoding: the whole model over one row.
bool is_plain_step(const CostSample& sample, int n_layers);

// Adds a measured pass. On a quiet machine it takes the place of what busy ones made of this pass.
// Of busy times at about the same context the shortest stays, because a disturbance only adds time.
void add_measured(CostProfile& profile, const CostSample& sample);

// How far the times can be trusted.
struct ProfileNoise {
    double busy_share = 0;  // of the samples: those of a busy machine
    double spread = 0;      // over the time, in the median

    bool is_busy() const { return busy_share > 0.25 || spread > 0.3; }
};
ProfileNoise noise_of(const CostProfile& profile);

// The longest context of any sample; 0 without samples.
int longest_context(const CostProfile& profile);

// True if a CostModel can be fitted to it: it has a step of plain decoding and valid layer classes.
bool can_fit(const CostProfile& profile);

}  // namespace knap
