// The axes of a profile (contexts, rows, levels), and its samples beside the fit, for the table,
// the JSON object and the plots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/cost/cost_model.h"

namespace knap {

// Ascending, without duplicates.
std::vector<int> measured_contexts(const CostProfile& profile);
std::vector<int> measured_rows(const CostProfile& profile);  // of passes of the whole model
// Full attention and every window.
std::vector<Level> measured_levels(const CostProfile& profile);

// The sample of a pass of the whole model with its head; null: not measured.
const CostSample* whole_pass(const CostProfile& profile, int n_context, int n_rows);

// A class of layers that cost the same, represented by its first layer.
struct LayerClass {
    int first = 0;
    int n_layers = 0;
};
std::vector<LayerClass> layer_classes(const CostProfile& profile);
// "" if all layers are alike, otherwise ", 12 layers like 3".
std::string class_suffix(const CostProfile& profile, const LayerClass& layer_class);

std::string level_name(const Level& level);  // "full", "skip", "w16+256"

// The fitted time of a sample. Returns nullopt for a pass of several rows without the head.
std::optional<double> fitted_ms(const CostModel& costs, const CostSample& sample);

// The time of one attention in a measured pass, with all other parts as fitted (a partial
// residual).
struct AttentionPoint {
    int n_context = 0;
    double ms = 0;
};
std::vector<AttentionPoint> attention_points(const CostProfile& profile,
                                             const CostModel& costs,
                                             int layer,
                                             const Level& level);

}  // namespace knap
