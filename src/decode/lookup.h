// Drafting by looking back: when the last few tokens have occurred before, in the prompt or in the
// answer, what followed them then is proposed again. It costs no pass, and wins where text repeats
// itself: summaries, code, edits, loops (methods 3.20).
#pragma once

#include <memory>

#include "decode/ngram_index.h"
#include "decode/strategy.h"

namespace knap {

struct LookupOptions {
    int ngram_max = 3;  // tokens at the end of the text that must have occurred before: tried first
    int ngram_min = 2;  // down to this many
    int n_draft = 10;   // tokens proposed, at most
};

class LookupStrategy final : public Strategy {
  public:
    explicit LookupStrategy(const LookupOptions& options);

    void begin(std::span<const Token> prompt) override;
    Proposal propose(const RoundState& state) override;

  private:
    void draft_from(std::size_t next, int n_tokens);

    int n_draft_;
    NgramIndex index_;
    DraftTree tree_;
};

std::unique_ptr<Strategy> build_lookup(const SpeculationOptions& options,
                                       const ModelConfig& config);

}  // namespace knap
