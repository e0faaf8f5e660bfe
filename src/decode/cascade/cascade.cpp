#include "decode/cascade/cascade.h"

#include <algorithm>

namespace knap {

Proposal CascadeStrategy::propose(const RoundState& state) {
    Proposal proposal = drafting_.propose(state);
    if (auto* how = std::get_if<DraftWithPlan>(&proposal.draft)) {
        // The rows of a wrong guess are wasted, so a guess is no longer than its match.
        const auto found = source_.find(state.history, how->stop.n_max);
        how->guess = found.tokens.first(
            std::min(found.tokens.size(), static_cast<std::size_t>(found.match_length)));
    }
    return proposal;
}

std::unique_ptr<Strategy> build_cascade(const SpeculationOptions& options,
                                        const StrategyParts& parts) {
    return std::make_unique<CascadeStrategy>(
        make_static_plan(read_static_plan(options), options.strategy, parts));
}

}  // namespace knap
