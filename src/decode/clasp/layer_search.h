// CLaSp's search for layers to skip (methods 4): of L layers exactly M are left out, so that the
// residual stream of one token ends as close as possible to the whole model's. Dynamic programming
// over layers: cell (i, j) is the best state found after the first i layers with j of them skipped,
// by its cosine with the whole model's stream there. The best state of a cell is kept greedily, so
// that the layers found are good, not optimal.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/module_plan.h"

namespace knap {

// What the layers of a model make of a token's stream.
class LayerStates {
  public:
    virtual ~LayerStates() = default;

    virtual int n_layers() const = 0;
    // The whole model's stream of the token before layer `layer`: [n_embd]. `layer` may be L.
    virtual std::span<const float> target(int layer) const = 0;
    // What layer `layer` makes of `states` [n_embd, n], all in one go: [n_embd, n]. Valid until the
    // next call. Empty: cancelled.
    virtual std::span<const float> run(int layer, std::span<const float> states) = 0;
};

struct SkippedLayers {
    ModulePlan plan;
    double cosine = 0;  // of its last state with the whole model's
};

// `n_skipped` of 1..L. Nullopt: cancelled.
std::optional<SkippedLayers> find_skipped_layers(LayerStates& states, int n_skipped);

}  // namespace knap
