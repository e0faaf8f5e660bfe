// CLaSp's search for layers to skip (docs/methods.md, "CLaSp"): exactly M of L layers are skipped,
// such that the residual stream of one token ends as close as possible to the whole model's.
// Dynamic programming over layers: cell (i, j) holds the best state after the first i layers with j
// of them skipped, by its cosine to the whole model's stream there. A cell greedily keeps its best
// state, so the result is good, not optimal.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "forward/module_plan.h"

namespace knap {

// The effect of the layers of a model on the stream of a token.
class LayerStates {
  public:
    virtual ~LayerStates() = default;

    virtual int n_layers() const = 0;
    // The whole model's stream of the token before layer `layer`: [n_embd]. `layer` may be L.
    virtual std::span<const float> target(int layer) const = 0;
    // Runs layer `layer` on `states` [n_embd, n], all at once. Returns [n_embd, n], valid until the
    // next call; empty when cancelled.
    virtual std::span<const float> run(int layer, std::span<const float> states) = 0;
};

struct SkippedLayers {
    ModulePlan plan;
    double cosine = 0;  // of its last state with the whole model's
};

// `n_skipped` must be in 1..L. Returns nullopt when cancelled.
std::optional<SkippedLayers> find_skipped_layers(LayerStates& states, int n_skipped);

}  // namespace knap
