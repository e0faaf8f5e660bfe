#include "decode/knapspec/copy_drafts.h"

#include <algorithm>
#include <cstddef>

#include "decode/knapspec/suspension.h"

namespace knap {

namespace {

// Candidates at a position.
constexpr std::size_t kWidth = 3;
// No row is so cheap that a token less likely than this would pay.
constexpr double kLeastReached = 0.02;

}  // namespace

CopyDrafts::CopyDrafts(bool may_branch, const Learned* known, Learned* notes)
    : may_branch_(may_branch) {
    for (std::size_t i = 0; i < learned_.size(); ++i) {
        for (std::size_t kind = 0; kind < kCopiedTexts; ++kind) {
            CopyAcceptance& acceptance = *learned_[i].all()[kind];
            if (known != nullptr) {
                acceptance.recall(known->copies[i][kind]);
            }
            if (notes != nullptr) {
                acceptance.note_in(notes->copies[i][kind]);
            }
        }
    }
}

void CopyDrafts::begin(const RequestStart& request) {
    texts_.begin(request.prompt, request.references, request.prediction);
    prediction_.begin(request.prediction);
    n_followed_ = request.prompt.size();
    is_sampled_ = request.sampling.temperature > 0;
    is_constrained_ = request.is_constrained;
    is_choice_ = false;
    of_matches().fade();
    learned().choices.fade();
    learned().predicted.fade();
    ledger_.clear();
    suspended_until_ = 0;
    n_suspensions_ = 0;
    look_up();
}

void CopyDrafts::follow(std::span<const Token> history) {
    while (n_followed_ < history.size()) {
        observe(history[n_followed_]);
        texts_.follow(history.first(++n_followed_));
        look_up();
    }
}

void CopyDrafts::look_up() {
    matches_ = texts_.find();
    rank_candidates(matches_, {}, kWidth, candidates_);
}

// The text goes on with `token`.
void CopyDrafts::observe(Token token) {
    for (const CopyCandidate& candidate : candidates_) {
        of_next().observe(candidate.evidence, candidate.token == token);
    }
    is_choice_ = false;  // not known inside a round
    if (const auto expected = prediction_.next(); !expected.empty()) {
        learned().predicted.observe(predicted_evidence(0), expected.front() == token);
    }
    prediction_.accept(token);
}

CopyEvidence CopyDrafts::predicted_evidence(int depth) const {
    return {.length = prediction_.match_length() + depth,
            .standing = CopyEvidence::Standing::leading};
}

std::vector<CopyNode> CopyDrafts::offer(int max_nodes, bool is_choice) {
    is_choice_ = is_choice;
    if (max_nodes <= 0 || is_suspended()) {
        return {};
    }
    if (prefers_prediction()) {
        return follow_prediction(max_nodes);
    }
    // A grammar may trust some tokens of a copy more than this does, so it gets all of a chain.
    const bool may_branch = may_branch_ && !is_constrained_;
    return grow_copy_tree(matches_, of_next(), of_matches(),
                          {.max_nodes = max_nodes,
                           .width = may_branch ? kWidth : 1,
                           .least_reached = is_constrained_ ? 0 : kLeastReached});
}

bool CopyDrafts::prefers_prediction() {
    return !prediction_.next().empty() &&
           (candidates_.empty() || learned().predicted.at(predicted_evidence(0)) >=
                                       of_next().at(candidates_.front().evidence));
}

std::vector<CopyNode> CopyDrafts::follow_prediction(int max_nodes) {
    std::vector<CopyNode> nodes;
    double reached = 1;
    for (const Token token : prediction_.next()) {
        const int depth = static_cast<int>(nodes.size());
        if (depth == max_nodes) {
            break;
        }
        reached *= learned().predicted.at(predicted_evidence(depth));
        nodes.push_back({.token = token, .parent = depth - 1, .reached = reached});
    }
    return nodes;
}

bool CopyDrafts::record_round(const RoundTime& time) {
    ledger_.add(time);
    if (!ledger_.is_losing()) {
        return true;
    }
    suspended_until_ = n_followed_ + suspension_tokens(n_suspensions_++);
    ledger_.clear();
    return false;
}

}  // namespace knap
