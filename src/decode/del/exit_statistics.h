// DEL's arithmetic (docs/methods.md, "DEL"): how often the model, cut off after each of its layers,
// agrees with the whole model, and which exit gives the most tokens per layer computed. Layers
// count from 1: an exit after layer l runs l layers.
#pragma once

#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

// The token that the model would choose after a row if it ended at some layer.
struct ShadowToken {
    Token token = 0;
    float confidence = 0;  // its probability
};

struct ExitChoice {
    int n_layers = 1;
    int draft_length = 0;  // the best for the layer
    double speed = 1;      // predicted tokens per layer, over those of plain decoding
};

class ExitStatistics {
  public:
    // `decay`: factor on earlier counts per round. `max_length`: of the drafts that layers are
    // rated by.
    ExitStatistics(int n_layers, double decay, int max_length);

    void clear();
    // Adds a round. `shadows` has the tokens of layer 1 for all rows, then those of layer 2, up to
    // layer L - 1; `target` [n_rows] has the whole model's. Rows after a rejected draft must not be
    // among them.
    void add(std::span<const ShadowToken> shadows, std::span<const Token> target);

    // The layer and draft length with the highest TPL; of equals, the first layer, then the
    // shortest draft.
    ExitChoice best() const;
    // Halfway between the mean confidence of tokens that agreed and that of tokens that did not; 0
    // if either has never been seen, so that drafting goes on.
    float threshold(int n_layers) const;
    double acceptance(int n_layers) const;

  private:
    struct Counts {
        double matched = 0;
        double missed = 0;
        double confidence_matched = 0;  // summed
        double confidence_missed = 0;
    };

    const Counts& counts(int n_layers) const {
        return counts_[static_cast<std::size_t>(n_layers - 1)];
    }

    int n_layers_;
    double decay_;
    int max_length_;
    std::vector<Counts> counts_;  // [L - 1]
};

}  // namespace knap
