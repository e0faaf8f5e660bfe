#include "decode/lookup/lookup.h"

#include <algorithm>

#include "decode/option_table.h"

namespace knap {

Proposal LookupStrategy::propose(const RoundState& state) {
    const auto found = source_.find(state.history, std::min(n_draft_, state.n_room));
    if (found.tokens.empty()) {
        return {.draft = PlainStep{}};
    }
    tree_.set_chain(found.tokens);
    return {.draft = DraftTokens{.tree = &tree_}};
}

std::unique_ptr<Strategy> build_lookup(const SpeculationOptions& options,
                                       const StrategyParts& /*parts*/) {
    LookupOptions own;
    own.n_draft = draft_max_or(options, own.n_draft);
    return std::make_unique<LookupStrategy>(own);
}

}  // namespace knap
