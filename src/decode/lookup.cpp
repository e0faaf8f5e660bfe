#include "decode/lookup.h"

#include <algorithm>

#include "base/error.h"

namespace knap {

namespace {

bool starts_with(std::span<const Token> text, std::span<const Token> beginning) {
    return text.size() >= beginning.size() &&
           std::ranges::equal(text.first(beginning.size()), beginning);
}

}  // namespace

LookupStrategy::LookupStrategy(const LookupOptions& options)
    : n_draft_(options.n_draft), index_(options.ngram_min, options.ngram_max) {}

void LookupStrategy::begin(std::span<const Token> prompt) {
    // A conversation that goes on keeps its index. Any other is indexed anew, which is small beside
    // the pass that its tokens need.
    if (!starts_with(prompt, index_.text())) {
        index_.clear();
    }
    index_.append(prompt.subspan(index_.text().size()));
}

Proposal LookupStrategy::propose(const RoundState& state) {
    const std::size_t n_indexed = index_.text().size();
    KNAP_ASSERT(n_indexed <= state.history.size(), "a history grows from its prompt");
    index_.append(state.history.subspan(n_indexed));

    const int n_tokens = std::min(n_draft_, state.n_room);
    const auto match = index_.find_end();
    if (!match || n_tokens <= 0) {
        return {.draft = PlainStep{}};
    }
    draft_from(match->next, n_tokens);
    return {.draft = DraftTokens{.tree = &tree_}};
}

// Copies the tokens from place `next` on. The copy may run past the end of the text into what it
// has just drafted (as in LZ77), so that a loop goes on for as long as a draft may be.
void LookupStrategy::draft_from(std::size_t next, int n_tokens) {
    const auto text = index_.text();
    tree_.clear();
    int last = kPendingNode;
    for (std::size_t place = next; tree_.n_nodes() < n_tokens; ++place) {
        const Token token =
            place < text.size() ? text[place] : tree_.token(static_cast<int>(place - text.size()));
        last = tree_.add(token, last);
    }
}

std::unique_ptr<Strategy> build_lookup(const SpeculationOptions& options,
                                       const ModelConfig& /*config*/) {
    LookupOptions own;
    if (options.draft_max > 0) {
        own.n_draft = options.draft_max;
    }
    return std::make_unique<LookupStrategy>(own);
}

}  // namespace knap
