// The layers of a model as CLaSp's search runs them (docs/methods.md, "CLaSp"): all states of a
// layer are rows at the position of one committed token. Each sees the rows before that token, and
// itself. The committed cache does not change.
#pragma once

#include <span>
#include <vector>

#include "decode/clasp/layer_search.h"

namespace knap {

class Forward;
class Sequence;

class TokenLayers final : public LayerStates {
  public:
    // `target` [n_embd, L + 1] has the token's streams before each layer and after the last; `row`
    // is its committed row. At least one scratch row must be free. Everything passed must outlive
    // the object.
    TokenLayers(Forward& forward, const Sequence& cache, std::span<const float> target, int row);

    int n_layers() const override;
    std::span<const float> target(int layer) const override;
    std::span<const float> run(int layer, std::span<const float> states) override;

  private:
    Forward& forward_;
    const Sequence& cache_;
    std::span<const float> target_;
    int row_;
    std::size_t n_embd_;
    std::vector<float> results_;
};

}  // namespace knap
