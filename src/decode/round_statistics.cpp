#include "decode/round_statistics.h"

#include <algorithm>
#include <numeric>

namespace knap {
namespace {

void count_up_to(std::vector<int>& counts, int depth) {
    counts.resize(std::max(counts.size(), static_cast<std::size_t>(depth)));
    for (int i = 0; i < depth; ++i) {
        ++counts[static_cast<std::size_t>(i)];
    }
}

int sum(const std::vector<int>& counts) {
    return std::accumulate(counts.begin(), counts.end(), 0);
}

double ratio(int part, int whole) {
    return whole > 0 ? static_cast<double>(part) / whole : 0.0;
}

}  // namespace

DraftSource source_of(const Proposal& proposal) {
    if (const auto* given = std::get_if<DraftTokens>(&proposal.draft)) {
        return given->are_forced ? DraftSource::forced : DraftSource::copy;
    }
    if (const auto* how = std::get_if<DraftWithPlan>(&proposal.draft)) {
        return how->guess.empty() ? DraftSource::plan : DraftSource::cascade;
    }
    return DraftSource::none;
}

void RoundStatistics::add(const Proposal& proposal, const RoundOutcome& outcome, int n_kept) {
    const int n_accepted = static_cast<int>(outcome.path.size());
    ++n_rounds_;
    n_nodes_ += outcome.tree.n_nodes();
    n_kept_ += n_kept;
    draft_ms_ += outcome.draft_ms;
    verify_ms_ += outcome.verify_ms;
    count_up_to(drafted_, outcome.tree.max_depth());
    count_up_to(accepted_, n_accepted);
    n_forced_ += outcome.is_forced ? n_accepted : 0;
    SourceStatistics* source = statistics_of(source_of(proposal));
    if (source != nullptr && !outcome.tree.is_empty()) {
        ++source->rounds;
        source->n_drafted += outcome.tree.max_depth();
        source->n_accepted += n_accepted;
    }
}

SourceStatistics* RoundStatistics::statistics_of(DraftSource source) {
    switch (source) {
        case DraftSource::copy:
            return &copies_;
        case DraftSource::plan:
            return &plans_;
        case DraftSource::cascade:
            return &cascades_;
        case DraftSource::forced:
        case DraftSource::none:
            break;
    }
    return nullptr;
}

void RoundStatistics::add_gaps(std::span<const float> gaps, int position) {
    for (const float gap : gaps) {
        if (gap < kNearTieGap) {
            near_ties_.push_back({position, gap});
        }
        ++position;
    }
}

SpeculationStatistics RoundStatistics::summary() const {
    SpeculationStatistics out{
        .rounds = n_rounds_,
        .n_drafted = sum(drafted_),
        .n_tree_nodes = n_nodes_,
        .n_accepted = sum(accepted_),
        .n_forced = n_forced_,
        .copies = copies_,
        .plans = plans_,
        .cascades = cascades_,
        .mean_accepted_length = ratio(n_kept_, n_rounds_),
        .near_ties = near_ties_,
    };
    out.acceptance_rate = ratio(out.n_accepted, out.n_drafted);
    for (std::size_t i = 0; i < drafted_.size(); ++i) {
        const int n_accepted = i < accepted_.size() ? accepted_[i] : 0;
        out.acceptance_by_position.push_back(ratio(n_accepted, drafted_[i]));
    }
    return out;
}

}  // namespace knap
