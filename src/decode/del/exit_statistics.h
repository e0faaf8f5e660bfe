// DEL's arithmetic (methods 6): how often a model that ends after each of its layers agrees with
// the whole of it, and which layer to leave at for the most tokens per layer computed. Layers are
// counted from 1: an exit after layer l runs l layers. Numbers alone.
#pragma once

#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

// What a model that ends at some layer would have said behind a row.
struct ShadowToken {
    Token token = 0;
    float confidence = 0;  // its probability
};

struct ExitChoice {
    int n_layers = 1;
    int draft_length = 0;  // at which the layer is best
    double speed = 1;      // predicted tokens per layer, over those of plain decoding
};

class ExitStatistics {
  public:
    // `decay`: what a round leaves of the counts before it. `max_length`: of the drafts that
    // layers are rated by.
    ExitStatistics(int n_layers, double decay, int max_length);

    void clear();
    // A round: `shadows` are those of layer 1 behind its rows, then those of layer 2, up to layer
    // L - 1; `target` [n_rows] is what the whole model said. Rows that follow a rejected draft are
    // not among them.
    void add(std::span<const ShadowToken> shadows, std::span<const Token> target);

    // The layer and draft length of the largest TPL; of equals the first layer, then the shortest.
    ExitChoice best() const;
    // Between the mean confidence of tokens that agreed and of those that did not; 0 where one of
    // the two has never been seen, so that drafting goes on.
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
