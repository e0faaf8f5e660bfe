// How often a copied token is right, by the length of the match before it and by how many matches
// agree on it. This is measured for free at every position of the text, whether a copy was drafted
// there or not (docs/methods.md, "Copies that learn").
#pragma once

#include <array>
#include <cstddef>

#include "decode/copies/copy_candidates.h"
#include "decode/learned/draft_counts.h"

namespace knap {

// The kind of text that is copied from and into.
enum class CopiedText {
    prose,
    structured,  // by a grammar: its keys and its layout repeat
    choice,      // where the grammar leaves a choice: keys and layout before it match anyway
    predicted,   // the user says what the answer will be like
};
inline constexpr std::size_t kCopiedTexts = 4;

class CopyAcceptance {
  public:
    static constexpr std::size_t kBins = 8;  // of match lengths
    static constexpr std::size_t kCells = kBins * CopyEvidence::kStandings;
    using Table = std::array<DraftCounts, kCells>;

    explicit CopyAcceptance(CopiedText kind = CopiedText::prose) : kind_(kind) {}

    // The probability that the next token is the one that the evidence speaks for.
    double at(const CopyEvidence& evidence) const;
    void observe(const CopyEvidence& evidence, bool is_right);
    // Halves the weight of all observations, for the beginning of another text.
    void fade();

    // Starts with what earlier runs have seen, which counts little.
    void recall(const Table& known);
    // How many positions of a text the counts are of. A position has one leading token; others that
    // were counted there are not first.
    static double n_positions(const Table& table);
    // Also counts in `table`, which must outlive the object, what is observed from now on.
    void note_in(Table& table) { notes_ = &table; }
    // The longest match of a bin; that of the last one has no limit.
    static int longest_of(std::size_t bin);

  private:
    static std::size_t bin(int match_length);
    double belief(const CopyEvidence& evidence) const;
    static std::size_t cell(const CopyEvidence& evidence);

    CopiedText kind_;
    Table seen_{};
    Table* notes_ = nullptr;
};

}  // namespace knap
