// Drafts copied after matches in the text, or along a prediction, offered with their expected
// acceptance. Every position of the answer tests the copy that could have been made there, drafted
// or not, so the acceptance is known before anything is risked (docs/methods.md, "Copies that
// learn").
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/copies/copied_texts.h"
#include "decode/copies/copy_acceptance.h"
#include "decode/copies/copy_candidates.h"
#include "decode/copies/copy_tree.h"
#include "decode/knapspec/speed_ledger.h"
#include "decode/learned/learned.h"
#include "decode/lookup/prediction_cursor.h"
#include "decode/strategy.h"

namespace knap {

class CopyDrafts {
  public:
    // `may_branch`: offers may be trees.
    explicit CopyDrafts(bool may_branch = false) : may_branch_(may_branch) {}
    // Starts with what earlier runs have learned, and notes what this one does; either may be null.
    CopyDrafts(bool may_branch, const Learned* known, Learned* notes);

    void begin(const RequestStart& request);
    // Processes the tokens that the text has gained; it is now `history`.
    void follow(std::span<const Token> history);

    // Returns up to `max_nodes` tokens that may follow the text, as a tree (copy_tree.h); empty if
    // nothing matches or copies are suspended. `is_choice`: the grammar of the answer, if it has
    // one, leaves the next token open.
    std::vector<CopyNode> offer(int max_nodes, bool is_choice = false);

    // Records a round that verified a copy. Returns false if copies keep losing time and are now
    // suspended.
    bool record_round(const RoundTime& time);
    bool is_suspended() const { return n_followed_ < suspended_until_; }

  private:
    // What was learned while decoding greedily, or while sampling, which accepts less.
    struct ByKind {
        CopyAcceptance prose{CopiedText::prose};
        CopyAcceptance structured{CopiedText::structured};
        CopyAcceptance choices{CopiedText::choice};
        CopyAcceptance predicted{CopiedText::predicted};

        std::array<CopyAcceptance*, kCopiedTexts> all() {  // in the order of CopiedText
            return {&prose, &structured, &choices, &predicted};
        }
    };

    ByKind& learned() { return learned_[is_sampled_ ? 1 : 0]; }
    CopyAcceptance& of_matches() {
        return is_constrained_ ? learned().structured : learned().prose;
    }
    // Of the token that comes next.
    CopyAcceptance& of_next() {
        return is_constrained_ && is_choice_ ? learned().choices : of_matches();
    }
    void look_up();
    void observe(Token token);
    CopyEvidence predicted_evidence(int depth) const;
    std::vector<CopyNode> follow_prediction(int max_nodes);
    bool prefers_prediction();

    bool may_branch_;
    CopiedTexts texts_;
    PredictionCursor prediction_;
    std::array<ByKind, 2> learned_;
    bool is_sampled_ = false;
    bool is_constrained_ = false;            // the current answer
    bool is_choice_ = false;                 // what comes after the text processed so far
    std::span<const Match> matches_;         // of the end of the text processed so far
    std::vector<CopyCandidate> candidates_;  // what followed them
    SpeedLedger ledger_;
    std::size_t n_followed_ = 0;       // tokens of the text processed so far
    std::size_t suspended_until_ = 0;  // length of the text
    int n_suspensions_ = 0;
};

}  // namespace knap
