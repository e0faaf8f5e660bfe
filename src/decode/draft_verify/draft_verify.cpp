#include "decode/draft_verify/draft_verify.h"

#include "decode/draft_verify/options.h"

namespace knap {

namespace {

struct DraftVerifyOptions {
    StaticPlanOptions drafting{};
    ThresholdOptions threshold{};
};

constexpr auto kOptions =
    join_tables(plan_settings<DraftVerifyOptions>(), threshold_settings<DraftVerifyOptions>());

}  // namespace

Proposal DraftVerifyStrategy::propose(const RoundState& state) {
    Proposal proposal = drafting_.propose(state);
    if (auto* how = std::get_if<DraftWithPlan>(&proposal.draft)) {
        how->stop = threshold_.stop_rule(state.n_room);
    }
    return proposal;
}

void DraftVerifyStrategy::observe(const RoundOutcome& outcome) {
    if (outcome.is_forced) {
        return;  // nothing was drafted by confidence
    }
    threshold_.observe(static_cast<int>(outcome.path.size()), outcome.tree.max_depth());
}

std::unique_ptr<Strategy> build_draft_verify(const SpeculationOptions& options,
                                             const StrategyParts& parts) {
    DraftVerifyOptions own{.threshold = {.cap = threshold_cap(options, parts.max_rows)}};
    apply_settings(options.settings, kOptions, own);
    return std::make_unique<DraftVerifyStrategy>(
        make_static_plan(own.drafting, options.strategy, parts), own.threshold);
}

std::span<const StrategyOptionInfo> draft_verify_option_infos() {
    static const auto infos = infos_of(kOptions);
    return infos;
}

}  // namespace knap
