#include "decode/static/static_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "forward/forward.h"
#include "forward/plan_text.h"
#include "model/config.h"

namespace knap {

namespace {

struct Settings {
    StaticPlanOptions drafting{};
};

constexpr auto kOptions = static_plan_settings<Settings>();

}  // namespace

StaticPlanStrategy::StaticPlanStrategy(ModulePlan plan, const StaticPlanOptions& options)
    : plan_(std::move(plan)), options_(options), current_(plan_) {}

Proposal StaticPlanStrategy::propose(const RoundState& state) {
    if (state.n_room <= 0) {
        return {.draft = PlainStep{}};
    }
    // The pending token has no row yet.
    adapt_to(static_cast<int>(state.history.size()) - 1);
    return {
        .draft =
            DraftWithPlan{
                .plan = &current_,
                .stop = {.n_max = std::min(options_.length, state.n_room),
                         .exit_confidence = options_.exit_confidence},
                .width = options_.width,
            },
    };
}

// A window that covers the context is `full`, so the canonical plan changes only when the context
// outgrows a window.
void StaticPlanStrategy::adapt_to(int n_context) {
    if (first_context_ <= n_context && n_context <= last_context_) {
        return;
    }
    current_ = canonical(plan_, n_context);
    first_context_ = 0;
    last_context_ = std::numeric_limits<int>::max();
    for (const Window& window : distinct_windows(plan_)) {
        if (n_context <= window.n_rows()) {
            last_context_ = std::min(last_context_, window.n_rows());
        } else {
            first_context_ = std::max(first_context_, window.n_rows() + 1);
        }
    }
}

StaticPlanOptions read_static_plan(const SpeculationOptions& options) {
    Settings own;
    own.drafting.length = draft_max_or(options, own.drafting.length);
    apply_settings(options.settings, kOptions, own);
    return own.drafting;
}

StaticPlanStrategy make_static_plan(const StaticPlanOptions& options,
                                    std::string_view strategy,
                                    const StrategyParts& parts) {
    if (options.plan.empty()) {
        fail(kPlanSetting, ": expected a plan for strategy ", strategy,
             ", such as exit=8, a=w16+256 or a3-7=skip,m5=skip (`knap search` finds plans); found "
             "none");
    }
    ModulePlan plan = parse_plan(options.plan, parts.config.n_layers);
    check_runnable(plan, parts.config.n_layers, kPlanSetting, parts.forward.cheapest_head());
    check_experts(plan, parts.config.n_experts_used(), kPlanSetting);
    return {within_own_windows(std::move(plan), parts.config.windows()), options};
}

std::unique_ptr<Strategy> build_static_plan(const SpeculationOptions& options,
                                            const StrategyParts& parts) {
    return std::make_unique<StaticPlanStrategy>(
        make_static_plan(read_static_plan(options), options.strategy, parts));
}

std::span<const StrategyOptionInfo> static_plan_option_infos() {
    static const auto infos = infos_of(kOptions);
    return infos;
}

}  // namespace knap
