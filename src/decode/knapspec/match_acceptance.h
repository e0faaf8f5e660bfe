// How often a copied token is right, by how long the match is that it was copied after: measured
// for nothing at every position of the text, whether a copy was drafted there or not. A copied run
// lengthens its own match, so this table alone says what a draft of any length is worth.
#pragma once

#include <array>
#include <cstddef>

#include "search/throughput.h"

namespace knap {

class MatchAcceptance {
  public:
    MatchAcceptance();

    // The probability that the next token is the one that followed a match of this length.
    double at(int match_length) const;
    // Of a draft of up to `n_tokens` tokens copied after such a match.
    AcceptanceByDepth of_copy(int match_length, int n_tokens) const;

    void observe(int match_length, bool is_right);
    // Another text begins: what was seen counts half as much.
    void fade();

  private:
    struct Count {
        double right = 0;
        double all = 0;
    };
    static constexpr std::size_t kBins = 7;
    static std::size_t bin(int match_length);

    std::array<Count, kBins> seen_{};
};

}  // namespace knap
