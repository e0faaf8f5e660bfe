// How often a copied token is right, by the length of the match that it was copied after. This is
// measured for free at every position of the text, whether a copy was drafted there or not. A right
// token lengthens the match, so one table gives the acceptance of copies of any length
// (docs/methods.md, "Copies by match length").
#pragma once

#include <array>
#include <cstddef>

#include "search/throughput.h"

namespace knap {

// The kind of text that is copied from and into.
enum class CopiedText {
    prose,
    structured,  // by a grammar: its keys and its layout repeat
    choice,      // where the grammar leaves a choice: keys and layout before it match anyway
    predicted,   // the user says what the answer will be like
};

class MatchAcceptance {
  public:
    explicit MatchAcceptance(CopiedText kind = CopiedText::prose);

    // The probability that the next token is the one that followed a match of this length.
    double at(int match_length) const;
    // Acceptance of a draft of `n_tokens` tokens copied after such a match.
    AcceptanceByDepth of_copy(int match_length, int n_tokens) const;

    void observe(int match_length, bool is_right);
    // Halves the weight of all observations, for the beginning of another text.
    void fade();

  private:
    struct Count {
        double right = 0;
        double all = 0;
    };
    static constexpr std::size_t kBins = 7;
    static std::size_t bin(int match_length);
    double belief(std::size_t bin) const;

    CopiedText kind_;
    std::array<Count, kBins> seen_{};
};

}  // namespace knap
