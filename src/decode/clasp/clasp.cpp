#include "decode/clasp/clasp.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "decode/clasp/token_layers.h"
#include "forward/forward.h"
#include "forward/plan_text.h"
#include "model/config.h"

namespace knap {

ClaspStrategy::ClaspStrategy(const ClaspOptions& options, int n_layers, int n_embd, Search search)
    : options_(options),
      whole_model_(n_layers),
      n_embd_(static_cast<std::size_t>(n_embd)),
      search_(std::move(search)),
      plan_(whole_model_) {
    for (int layer = 0; layer <= n_layers; ++layer) {
        captures_.push_back(2 * layer);
    }
}

void ClaspStrategy::begin(const RequestStart& request) {
    n_prompt_ = request.prompt.size();
    round_ = 0;
    plan_ = whole_model_;
    streams_.clear();
    decisions_.clear();
}

// Rounds count from 1: the first search follows the first round.
bool ClaspStrategy::searches_after(int round) const {
    return (round - 1) % options_.interval == 0;
}

Proposal ClaspStrategy::propose(const RoundState& state) {
    if (!streams_.empty()) {
        search(state.history);
    }
    ++round_;
    Proposal proposal;
    if (state.n_room > 0) {
        proposal.draft = DraftWithPlan{
            .plan = &plan_,
            .stop = {.n_max = std::min(options_.draft_max, state.n_room),
                     .exit_confidence = options_.exit_confidence},
        };
    }
    if (searches_after(round_)) {
        proposal.captures = captures_;
    }
    return proposal;
}

// The search runs when the next round begins, so a request that ends before never pays for it.
void ClaspStrategy::search(std::span<const Token> history) {
    // The last token is pending; the one before it has the last committed row.
    const int row = static_cast<int>(history.size()) - 2;
    const auto found = search_(streams_, row);
    streams_.clear();
    if (!found) {
        return;  // cancelled, or others are busy: the plan stays
    }
    plan_ = found->plan;
    decisions_.push_back({
        .token = static_cast<int>(history.size() - n_prompt_),
        .source = to_string(plan_),
        .plan = to_string(plan_),
        .reason = concat("skipping these ", options_.n_skipped,
                         " layers keeps the last token's stream closest: cosine ",
                         static_cast<double>(std::lround(1000 * found->cosine)) / 1000),
    });
}

void ClaspStrategy::observe(const RoundOutcome& outcome) {
    if (!searches_after(round_)) {
        return;
    }
    const std::size_t row = outcome.path.empty() ? 0 : row_of(outcome.path.back());
    for (const std::span<const float> stream : outcome.captures) {
        const auto token = stream.subspan(row * n_embd_, n_embd_);
        streams_.insert(streams_.end(), token.begin(), token.end());
    }
}

std::unique_ptr<Strategy> build_clasp(const SpeculationOptions& options,
                                      const StrategyParts& parts) {
    const int n_layers = parts.config.n_layers;
    const ClaspOptions own = read_clasp_options(options, n_layers);
    const auto search = [parts, n_skipped = own.n_skipped](std::span<const float> streams,
                                                           int row) {
        TokenLayers layers(parts.forward, parts.cache, streams, row);
        return find_skipped_layers(layers, n_skipped);
    };
    return std::make_unique<ClaspStrategy>(own, n_layers, parts.config.n_embd, search);
}

}  // namespace knap
