#include "decode/draft_verify/draft_verify.h"

#include "base/error.h"
#include "decode/draft_verify/options.h"

namespace knap {

namespace {

struct DraftVerifyOptions {
    ThresholdOptions threshold{};
};

constexpr auto kOptions = threshold_settings<DraftVerifyOptions>();

}  // namespace

Proposal DraftVerifyStrategy::propose(const RoundState& state) {
    Proposal proposal = drafting_.propose(state);
    if (auto* how = std::get_if<DraftWithPlan>(&proposal.draft)) {
        how->stop = threshold_.stop_rule(state.n_room);
    }
    return proposal;
}

void DraftVerifyStrategy::observe(const RoundOutcome& outcome) {
    threshold_.observe(static_cast<int>(outcome.path.size()), outcome.tree.max_depth());
}

std::unique_ptr<Strategy> build_draft_verify(const SpeculationOptions& options,
                                             const StrategyParts& parts) {
    DraftVerifyOptions own{.threshold = threshold_from_flags(options, parts.max_rows)};
    apply_settings(options.strategy_options, kOptions, own);
    if (options.draft_plan.empty()) {
        fail(
            "--plan-file: strategy draft-verify needs the plan that `knap search --method "
            "draft-verify --data FILE -o PLANFILE` finds, or one of --draft-plan; found neither");
    }
    return std::make_unique<DraftVerifyStrategy>(make_static_plan(options, parts), own.threshold);
}

std::span<const StrategyOptionInfo> draft_verify_option_infos() {
    static const auto infos = infos_of(kOptions);
    return infos;
}

}  // namespace knap
