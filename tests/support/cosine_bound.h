// The lemma of the KnapSpec paper on which its objective rests: a stream whose cosine to the whole
// model's is above a bound has the same argmax (docs/methods.md, "When a cosine decides").
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "knap/types.h"

#include "model/weights.h"

namespace knap::test {

// An output matrix into which the weights of the final norm are multiplied. What the norm divides
// by is positive and the same for all tokens, so raw streams have the argmax of the model.
class FoldedHead {
  public:
    // `rows` is [n_embd, n_vocab], without the norm's weights.
    FoldedHead(std::vector<float> rows, std::size_t n_embd);
    explicit FoldedHead(const ModelTensors& tensors);

    std::size_t n_embd() const { return n_embd_; }
    std::size_t n_vocab() const { return rows_.size() / n_embd_; }
    std::span<const float> row(std::size_t token) const;
    // [n_vocab] Logits but for a positive factor, summed in double.
    std::vector<double> scores(std::span<const float> stream) const;
    std::size_t argmax(std::span<const float> stream) const;

  private:
    std::vector<float> rows_;
    std::size_t n_embd_;
};

struct CosineBound {
    std::size_t choice = 0;  // the argmax
    double margin = 0;       // of its score over the runner-up's, xi
    // With a cosine of at least this to the stream, any stream has the same argmax.
    double of_paper = 1;  // 1 - xi^2 / (2 |x|^2 max_j |w_choice - w_j|^2)
    // The same, but as low as it can be: some stream with a lower cosine has another argmax.
    double least = 1;
    std::size_t nearest = 0;  // the token that such a stream prefers
};

CosineBound cosine_bound(const FoldedHead& head, std::span<const float> stream);

}  // namespace knap::test
