#include "decode/round.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/involuntary_switches.h"
#include "decode/fitting_drafts.h"
#include "kv/sequence.h"

namespace knap {

Round::Round(Forward& forward, Sequence& cache, Sampler& sampler, const RoundOptions& options)
    : cache_(cache),
      forward_(forward),
      sampler_(sampler),
      options_(options),
      drafter_(forward, cache, sampler, options.acceptance.rule, options_.is_end_of_text),
      verifier_(forward, cache),
      acceptance_(sampler, options.acceptance) {}

std::optional<RoundOutcome> Round::run(Token pending, const Proposal& proposal) {
    const PassTotals start = forward_.pass_totals();
    const Stopwatch draft_watch;
    if (!draft(pending, proposal)) {
        return std::nullopt;
    }
    const double draft_ms = draft_watch.elapsed_ms();
    const PassTotals drafted = forward_.pass_totals();

    const std::int64_t switches_before = involuntary_switches();
    const Stopwatch verify_watch;
    const int n_best = options_.keeps_logits ? 0 : acceptance_.n_best_needed();
    const ForwardResult target =
        verifier_.run(pending, tree_, reusable_, proposal.captures, n_best);
    if (!target.is_complete) {
        return std::nullopt;
    }
    const double verify_ms = verify_watch.elapsed_ms();
    const bool was_disturbed = involuntary_switches() != switches_before;
    const double wait_ms = forward_.pass_totals().wait_ms - drafted.wait_ms;

    // The pending token's position equals its cache row; the first draft follows it.
    const LogitRows rows(target.logits, static_cast<std::size_t>(sampler_.n_vocab()), target.best);
    const Verdict& verdict = acceptance_.judge(tree_, rows, cache_.committed() + 1);
    keep(verdict.path);
    emitted_.clear();
    for (const int node : verdict.path) {
        emitted_.push_back(tree_.token(node));
    }
    emitted_.push_back(verdict.next);
    return RoundOutcome{
        .tree = tree_,
        .path = verdict.path,
        .emitted = emitted_,
        .gaps = verdict.gaps,
        .logits = rows,
        .captures = target.captures,
        .confidences = confidences_,
        .n_guessed = n_guessed_,
        .is_forced = is_forced_,
        .draft_ms = draft_ms,
        .verify_ms = verify_ms,
        .own_draft_ms =
            draft_ms - (drafted.wait_ms - start.wait_ms) - (drafted.others_ms - start.others_ms),
        .own_verify_ms = verify_ms - wait_ms,
        .verify_pass = target.pass,
        .was_disturbed = was_disturbed,
    };
}

// Fills `tree_` with the proposed draft, and `reusable_` with the rows whose leading layers
// verification need not compute.
bool Round::draft(Token pending, const Proposal& proposal) {
    tree_.clear();
    reusable_ = {};
    confidences_ = {};
    n_guessed_ = 0;
    is_forced_ = false;
    const TokenConstraint* constraint = sampler_.constraint();
    if (const auto* given = std::get_if<DraftTokens>(&proposal.draft)) {
        KNAP_ASSERT(given->tree->n_nodes() <= max_nodes(), "a proposed draft fits the round");
        if (constraint != nullptr && !given->are_forced) {
            keep_fitting(*given->tree, *constraint, tree_);
        } else {
            tree_ = *given->tree;
        }
        is_forced_ = given->are_forced;
        return true;
    }
    if (const auto* how = std::get_if<DraftWithPlan>(&proposal.draft)) {
        const bool is_complete =
            drafter_.draft(pending, *how, proposal.captures, max_nodes(), tree_);
        reusable_ = drafter_.reusable_rows();
        confidences_ = drafter_.confidences();
        n_guessed_ = drafter_.n_guessed();
        return is_complete;
    }
    return true;
}

// Commits the pending token and the accepted path. If the path is not the beginning of the tree,
// its rows are moved next to each other. Everything above them is scratch again.
void Round::keep(std::span<const int> path) {
    const int first_node_row = cache_.committed() + 1;
    int next_row = first_node_row;
    for (const int node : path) {
        if (first_node_row + node != next_row) {
            forward_.copy_row(first_node_row + node, next_row);
        }
        ++next_row;
    }
    cache_.commit(next_row);
}

int Round::max_nodes() const {
    const int n_rows = std::min(options_.max_rows, forward_.max_rows(cache_.committed()));
    return std::min(n_rows, cache_.capacity() - cache_.committed()) - 1;
}

}  // namespace knap
