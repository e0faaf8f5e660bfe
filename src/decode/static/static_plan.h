// Drafts with a plan that the user has chosen: the same plan, length and exit confidence in every
// round (docs/methods.md, "Static plan"). LayerSkip's early exit is the plan `exit=N`.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "decode/option_table.h"
#include "decode/strategy.h"

namespace knap {

struct StaticPlanOptions {
    std::string plan{};         // as text (forward/plan_text.h)
    int length = 6;             // longest draft, in tokens
    float exit_confidence = 0;  // drafting stops after a token less probable than this; 0: never
    int width = 1;              // candidates per position
};

// The settings `plan` and `width`, for options with a member `drafting` of type StaticPlanOptions.
template <typename Options>
constexpr auto plan_settings() {
    using Option = StrategyOption<Options>;
    return std::array{
        Option{{"plan", "PLAN", "plan to draft with, such as a=w16+256,m3-5=skip"},
               [](Options& options, std::string_view text) {
                   options.drafting.plan = text;
                   return !text.empty();
               }},
        Option{{"width", "1..16", "candidates per draft position (default: 1)"},
               [](Options& options, std::string_view text) {
                   return read_integer(text, 1, kMaxDraftWidth, options.drafting.width);
               }},
    };
}

// The settings of plan_settings() and `exit-confidence`.
template <typename Options>
constexpr auto static_plan_settings() {
    using Option = StrategyOption<Options>;
    return join_tables(
        plan_settings<Options>(),
        std::array{
            Option{{"exit-confidence", "0..1",
                    "stop drafting after a token less probable than this (default: 0, never)"},
                   [](Options& options, std::string_view text) {
                       return read_number(text, 0, 1, options.drafting.exit_confidence);
                   }}});
}

class StaticPlanStrategy final : public Strategy {
  public:
    // `plan` must be runnable (check_runnable).
    StaticPlanStrategy(ModulePlan plan, const StaticPlanOptions& options);

    Proposal propose(const RoundState& state) override;

  private:
    void adapt_to(int n_context);

    ModulePlan plan_;
    StaticPlanOptions options_;
    // The canonical form of plan_, valid at context lengths first_context_..last_context_.
    ModulePlan current_;
    int first_context_ = 0;
    int last_context_ = -1;
};

// Reads `draft_max` and the settings; the rest keeps its default.
StaticPlanOptions read_static_plan(const SpeculationOptions& options);
// Throws when the plan is missing or cannot run.
StaticPlanStrategy make_static_plan(const StaticPlanOptions& options,
                                    std::string_view strategy,
                                    const StrategyParts& parts);
std::unique_ptr<Strategy> build_static_plan(const SpeculationOptions& options,
                                            const StrategyParts& parts);
std::span<const StrategyOptionInfo> static_plan_option_infos();

}  // namespace knap
