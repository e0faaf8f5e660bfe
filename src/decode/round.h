// One speculative round: draft, verify, accept, roll back. There is one implementation for chains
// and trees, and it does not depend on the strategy.
//
// On entry the cache has a row for every token of the text but the last, the pending one. The round
// drafts tokens after it, runs the whole model once over the pending token and the drafts, and
// keeps the drafts that the acceptance rule accepts. It emits those and one token of the whole
// model's own, so a round without drafts is a step of plain decoding. On exit the cache has a row
// for every token but that last one, each as the whole model computed it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/drafter.h"
#include "decode/strategy.h"
#include "decode/verifier.h"
#include "sampling/acceptance.h"

namespace knap {

struct RoundOptions {
    AcceptanceOptions acceptance{};
    std::function<bool(Token)> is_end_of_text;  // tokens after which nothing is drafted
    int max_rows = 0;           // of a verification: the pending token and all drafts
    bool keeps_logits = false;  // whole rows in RoundOutcome::logits, for who looks at them
};

class Round {
  public:
    // `sampler` has seen every token of the text; the caller passes it the tokens that a round
    // emits. If it has a constraint, drafts end before the first token that does not fit.
    // `forward`, `cache` and `sampler` must outlive the object.
    Round(Forward& forward, Sequence& cache, Sampler& sampler, const RoundOptions& options);

    // `pending` is the last token of the text. Returns nullopt when cancelled; the committed rows
    // are then unchanged. The outcome is valid until the next round.
    std::optional<RoundOutcome> run(Token pending, const Proposal& proposal);

  private:
    bool draft(Token pending, const Proposal& proposal);
    void keep(std::span<const int> path);
    int max_nodes() const;

    Sequence& cache_;
    Forward& forward_;
    Sampler& sampler_;
    RoundOptions options_;
    Drafter drafter_;
    Verifier verifier_;
    Acceptance acceptance_;
    DraftTree tree_;
    ReusableRows reusable_;
    std::span<const float> confidences_;
    int n_guessed_ = 0;
    bool is_forced_ = false;
    std::vector<Token> emitted_;
};

}  // namespace knap
