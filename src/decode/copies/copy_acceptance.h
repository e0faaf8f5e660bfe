// How often a copied token is right, by the length of the match before it and by how many matches
// agree on it. This is measured for free at every position of the text, whether a copy was drafted
// there or not (docs/methods.md, "Copies that learn").
#pragma once

#include <array>
#include <cstddef>

#include "decode/copies/copy_candidates.h"

namespace knap {

// The kind of text that is copied from and into.
enum class CopiedText {
    prose,
    structured,  // by a grammar: its keys and its layout repeat
    choice,      // where the grammar leaves a choice: keys and layout before it match anyway
    predicted,   // the user says what the answer will be like
};

class CopyAcceptance {
  public:
    explicit CopyAcceptance(CopiedText kind = CopiedText::prose) : kind_(kind) {}

    // The probability that the next token is the one that the evidence speaks for.
    double at(const CopyEvidence& evidence) const;
    void observe(const CopyEvidence& evidence, bool is_right);
    // Halves the weight of all observations, for the beginning of another text.
    void fade();

  private:
    struct Count {
        double right = 0;
        double all = 0;
    };
    static constexpr std::size_t kBins = 8;
    static std::size_t bin(int match_length);
    double belief(const CopyEvidence& evidence) const;
    static std::size_t cell(const CopyEvidence& evidence);

    CopiedText kind_;
    std::array<Count, kBins * CopyEvidence::kStandings> seen_{};
};

}  // namespace knap
