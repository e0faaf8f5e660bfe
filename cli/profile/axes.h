// Along what a profile was measured, and what its samples say of the fitted parts: shared by the
// table, the JSON object and the plots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/cost/cost_model.h"

namespace knap {

// Ascending, each once.
std::vector<int> measured_contexts(const CostProfile& profile);
std::vector<int> measured_rows(const CostProfile& profile);  // of passes of the whole model
// Full attention and every window.
std::vector<Level> measured_levels(const CostProfile& profile);

// The passes of the whole model, head included.
const CostSample* whole_pass(const CostProfile& profile, int n_context, int n_rows);

// A class of layers that cost the same, spoken for by its first layer.
struct LayerClass {
    int first = 0;
    int n_layers = 0;
};
std::vector<LayerClass> layer_classes(const CostProfile& profile);
// "" where all layers are alike, otherwise ", 12 layers like 3".
std::string class_suffix(const CostProfile& profile, const LayerClass& layer_class);

std::string level_name(const Level& level);  // "full", "skip", "w16+256"

// What the fit gives for a sample; nullopt for passes of several rows without a head.
std::optional<double> fitted_ms(const CostModel& costs, const CostSample& sample);

// An attention's share of a measured pass, all other parts taken as fitted (a partial residual).
struct AttentionPoint {
    int n_context = 0;
    double ms = 0;
};
std::vector<AttentionPoint> attention_points(const CostProfile& profile,
                                             const CostModel& costs,
                                             int layer,
                                             const Level& level);

}  // namespace knap
