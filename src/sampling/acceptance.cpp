#include "sampling/acceptance.h"

#include <cstddef>

#include "base/error.h"

namespace knap {

namespace {

int find_child(const DraftTree& tree, int parent, Token token) {
    int child = tree.first_child(parent);
    while (child != kNoNode && tree.token(child) != token) {
        child = tree.next_sibling(child);
    }
    return child;
}

}  // namespace

Acceptance::Acceptance(Sampler& sampler, const AcceptanceOptions& options)
    : sampler_(sampler), options_(options) {}

int Acceptance::n_best_needed() const {
    return follows_ratio() ? 0 : sampler_.n_best_needed();
}

const Verdict& Acceptance::judge(const DraftTree& tree,
                                 std::span<const float> logits,
                                 std::int64_t position) {
    return judge(tree, LogitRows(logits, static_cast<std::size_t>(sampler_.n_vocab())), position);
}

const Verdict& Acceptance::judge(const DraftTree& tree,
                                 const LogitRows& rows,
                                 std::int64_t position) {
    KNAP_ASSERT(rows.n_rows() == row_of(tree.n_nodes()),
                "every node and the pending token have a row");
    verdict_.path.clear();
    verdict_.gaps.clear();
    HistoryExtension ancestors(sampler_);
    int node = kPendingNode;
    for (;;) {
        const int child = follow(
            {.tree = tree, .node = node, .row = rows.row(row_of(node)), .position = position});
        if (child == kNoNode) {
            return verdict_;
        }
        ancestors.accept(tree.token(child));
        sampler_.decide(tree.token(child));
        if (sampler_.has_ended()) {
            verdict_.next = tree.token(child);
            return verdict_;
        }
        verdict_.path.push_back(child);
        node = child;
        ++position;
    }
}

int Acceptance::follow(const Place& place) {
    if (options_.assumed_rate) {
        return follow_assumption(place);
    }
    return follows_ratio() ? follow_ratio(place) : follow_choice(place);
}

bool Acceptance::follows_ratio() const {
    return options_.rule == AcceptanceRule::ratio && !sampler_.is_greedy();
}

// Emits the whole model's own choices, whatever was drafted.
int Acceptance::follow_choice(const Place& place) {
    if (options_.measures_gaps) {
        const Choice choice = sampler_.sample_with_gap(place.row, place.position);
        verdict_.gaps.push_back(choice.gap);
        verdict_.next = choice.token;
    } else {
        verdict_.next = sampler_.sample(place.row, place.position);
    }
    return find_child(place.tree, place.node, verdict_.next);
}

// Noise depends on the position, and a position may be drafted in several rounds. But it is judged
// in only one, the round that emits its token. So the random numbers used here, for acceptance and
// for the whole model's own choice, have not been seen before, and drafts were drawn with other
// noise (draft_sampler.cpp, which also handles a position drafted again): given everything before,
// they are fresh. The whole model's own noise is used once per position: for the draw from the
// residual of p after rejections, or from p when nothing was drafted.
int Acceptance::follow_ratio(const Place& place) {
    const auto& [tree, node, row, position] = place;
    if (tree.first_child(node) == kNoNode) {
        verdict_.next = sampler_.sample(row, position);
        return kNoNode;
    }
    const PositionNoise own = sampler_.noise(position);
    const PositionNoise coins = own.independent(NoisePurpose::acceptance);
    sampler_.allowed_distribution(row.logits, p_);
    trial_.start(p_, tree.drawn_from(node), sampler_.n_vocab());
    int n_tried = 0;
    for (int child = tree.first_child(node); child != kNoNode; child = tree.next_sibling(child)) {
        const Token draft = tree.token(child);
        if (coins.uniform(n_tried++) < trial_.keep_probability(draft)) {
            return child;
        }
        trial_.reject(draft);
    }
    verdict_.next = draw(trial_.tokens(), trial_.remaining(), own);
    return kNoNode;
}

int Acceptance::follow_assumption(const Place& place) {
    const PositionNoise own = sampler_.noise(place.position);
    const int child = place.tree.first_child(place.node);
    if (child != kNoNode && sampler_.fits(place.tree.token(child)) &&
        own.independent(NoisePurpose::assumption).uniform(0) < *options_.assumed_rate) {
        return child;
    }
    verdict_.next = sampler_.sample(place.row, place.position);
    return kNoNode;
}

}  // namespace knap
