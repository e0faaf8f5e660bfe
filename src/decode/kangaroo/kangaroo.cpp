#include "decode/kangaroo/kangaroo.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "decode/option_table.h"
#include "model/config.h"

namespace knap {

namespace {

constexpr std::array kOptions = {exit_confidence_option<KangarooOptions>(
    "stop drafting after a token less probable than this (default: 0.6)")};

AdapterHead& checked(AdapterHead* adapter) {
    if (adapter == nullptr) {
        fail(
            "`.adapter_path`: expected an adapter trained for the model (a GGUF file) for strategy "
            "kangaroo, found none");
    }
    return *adapter;
}

}  // namespace

KangarooStrategy::KangarooStrategy(const KangarooOptions& options, const StrategyParts& parts)
    : options_(options),
      forward_(parts.forward),
      cache_(parts.cache),
      head_(checked(parts.adapter)),
      plan_(early_exit_plan(parts.config.n_layers, head_.exit_layer())),
      capture_(2 * head_.exit_layer()) {}

Proposal KangarooStrategy::propose(const RoundState& state) {
    const auto text = state.history.first(state.history.size() - 1);
    kept_.assign(1, state.history.back());
    if (state.n_room <= 0 || !head_.follow(text, forward_, cache_)) {
        return {.draft = PlainStep{}};
    }
    return {
        .draft =
            DraftWithPlan{
                .plan = &plan_,
                .stop = {.n_max = std::min(options_.length, state.n_room),
                         .exit_confidence = options_.exit_confidence,
                         .confidence_of = ConfidenceOf::most_probable},
                .head = &head_,
            },
        .captures = std::span(&capture_, 1),
    };
}

void KangarooStrategy::observe(const RoundOutcome& outcome) {
    if (outcome.captures.empty()) {
        return;  // a plain step; the next draft catches up
    }
    const auto drafts = outcome.emitted.first(outcome.path.size());
    kept_.insert(kept_.end(), drafts.begin(), drafts.end());
    head_.accept(kept_, outcome.captures.front());
}

std::unique_ptr<Strategy> build_kangaroo(const SpeculationOptions& options,
                                         const StrategyParts& parts) {
    KangarooOptions own;
    own.length = draft_max_or(options, own.length);
    apply_settings(options.settings, kOptions, own);
    return std::make_unique<KangarooStrategy>(own, parts);
}

std::span<const StrategyOptionInfo> kangaroo_option_infos() {
    static const auto infos = infos_of(kOptions);
    return infos;
}

}  // namespace knap
