// The texts that copies come from: the conversation, and those that its answer may resemble
// (references, and a prediction as one of them).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/copies/suffix_index.h"

namespace knap {

// A place where the last tokens of the conversation have occurred before.
struct Match {
    const SuffixIndex* index = nullptr;  // the texts that the place is in
    std::size_t next = 0;                // index of the token that followed
    int length = 0;                      // of the match, up to SuffixIndex::kLongestMatch
};

class CopiedTexts {
  public:
    // Begins a request. What is indexed already stays: the beginning that the prompt shares with
    // the conversation so far, and references that were given before. The oldest references are
    // left out where all of them have more than kMaxReferenceTokens.
    void begin(std::span<const Token> prompt,
               std::span<const std::vector<Token>> references = {},
               std::span<const Token> prediction = {});
    // Takes in the tokens that the conversation has gained; it is now `history`.
    void follow(std::span<const Token> history);

    // The earlier occurrences of the end of the conversation, longest match first; of equals those
    // in the conversation, then the latest. Valid until the next call of any member.
    std::span<const Match> find();

    std::span<const Token> conversation() const { return conversation_.text(); }
    std::size_t n_bytes() const { return conversation_.n_bytes() + references_.n_bytes(); }

    static constexpr std::size_t kMaxReferenceTokens = std::size_t{1} << 20;
    // Matches that are looked at. More of them hardly change which token most of them agree on.
    static constexpr std::size_t kMaxMatches = 8;

  private:
    void set_references(std::span<const std::span<const Token>> texts);
    void add_matches(const SuffixIndex& index);

    SuffixIndex conversation_;
    SuffixIndex references_;
    std::vector<std::vector<Token>> reference_texts_;  // as indexed, the oldest first
    std::vector<SuffixIndex::Match> found_;
    std::vector<Match> matches_;
};

}  // namespace knap
