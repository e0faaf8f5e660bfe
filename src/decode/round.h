// One speculative round: draft, verify, accept, roll back. Written once, for chains and trees; it
// knows no strategy.
//
// At entry the cache holds a row for every token of the text but the last, the pending one. The
// round drafts successors of it, runs the whole model once over the pending token and the drafts,
// and keeps the drafts that the acceptance rule keeps. It emits those and one token of the whole
// model's own, so a round that drafts nothing is a step of plain decoding. At exit the cache holds
// a row for every token but that last one, each with the bits that the whole model gave it.
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
    int max_rows = 0;  // of a verification: the pending token and all drafts
};

class Round {
  public:
    // `sampler` has heard every token of the text, and hears of those that a round emits from the
    // caller. Everything given must outlive the object.
    Round(Forward& forward, KvCache& cache, Sampler& sampler, const RoundOptions& options);

    // `pending` is the last token of the text. Nullopt: cancelled, and the cache as it was. The
    // outcome is valid until the next round.
    std::optional<RoundOutcome> run(Token pending, const Proposal& proposal);

  private:
    bool draft(Token pending, const Proposal& proposal);
    void keep(std::span<const int> path);
    int max_nodes() const;

    KvCache& cache_;
    const Forward& forward_;
    RoundOptions options_;
    Drafter drafter_;
    Verifier verifier_;
    Acceptance acceptance_;
    DraftTree tree_;
    ReusableRows reusable_;
    std::span<const float> confidences_;
    int n_guessed_ = 0;
    std::vector<Token> emitted_;
};

}  // namespace knap
