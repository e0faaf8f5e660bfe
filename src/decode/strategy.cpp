#include "decode/strategy.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/quoted.h"
#include "decode/autoregressive.h"
#include "decode/lookup.h"
#include "decode/static_plan.h"
#include "model/name_list.h"

namespace knap {

namespace {

struct StrategyEntry {
    StrategyInfo info;
    bool drafts_with_model;  // options about drafting with the model have a meaning
    std::unique_ptr<Strategy> (*build)(const SpeculationOptions& options,
                                       const ModelConfig& config);
};

constexpr std::array kStrategies = {
    StrategyEntry{
        .info = {.name = "autoregressive", .summary = "plain decoding, nothing is drafted"},
        .drafts_with_model = false,
        .build = build_autoregressive,
    },
    StrategyEntry{
        .info = {.name = "static", .summary = "draft with the modules that --draft-plan names"},
        .drafts_with_model = true,
        .build = build_static_plan,
    },
    StrategyEntry{
        .info = {.name = "lookup",
                 .summary = "repeat what followed the last tokens earlier in the text"},
        .drafts_with_model = false,
        .build = build_lookup,
    },
};

constexpr auto kInfos = [] {
    std::array<StrategyInfo, kStrategies.size()> infos;
    std::ranges::transform(kStrategies, infos.begin(), &StrategyEntry::info);
    return infos;
}();

const StrategyEntry& find_strategy(std::string_view name) {
    const auto found = std::ranges::find(
        kStrategies, name, [](const StrategyEntry& entry) { return entry.info.name; });
    if (found == kStrategies.end()) {
        fail("--strategy: expected one of ", list_names(kInfos), "; found ", in_quotes(name));
    }
    return *found;
}

void check_ranges(const SpeculationOptions& options) {
    if (options.draft_max < 0 || options.draft_max > kMaxDraft) {
        fail("--draft-max: expected 0..", kMaxDraft, ", found ", options.draft_max);
    }
    if (options.draft_width < 1 || options.draft_width > kMaxDraftWidth) {
        fail("--draft-width: expected 1..", kMaxDraftWidth, ", found ", options.draft_width);
    }
    // Written so that NaN fails.
    if (!(options.exit_confidence >= 0 && options.exit_confidence <= 1)) {
        fail("--exit-confidence: expected a number of 0..1, found ", options.exit_confidence);
    }
    if (!(options.assume_acceptance <= 1)) {
        fail("--assume-acceptance: expected a number of 0..1, found ", options.assume_acceptance);
    }
}

// An option that would do nothing is a mistake that the user should hear of.
void check_fit(const SpeculationOptions& options, const StrategyEntry& entry) {
    if (entry.drafts_with_model) {
        return;
    }
    const auto refuse = [&](const char* flag) {
        fail(flag, ": expected a strategy that drafts with the model, such as static; found ",
             entry.info.name);
    };
    if (!options.draft_plan.empty()) {
        refuse("--draft-plan");
    }
    if (options.draft_width != 1) {
        refuse("--draft-width");
    }
    if (options.exit_confidence != 0) {
        refuse("--exit-confidence");
    }
}

}  // namespace

void Strategy::begin(std::span<const Token> /*prompt*/) {}

void Strategy::observe(const RoundOutcome& /*outcome*/) {}

std::span<const StrategyInfo> list_strategies() {
    return kInfos;
}

std::unique_ptr<Strategy> make_strategy(const SpeculationOptions& options,
                                        const ModelConfig& config) {
    const StrategyEntry& entry = find_strategy(options.strategy);
    check_ranges(options);
    check_fit(options, entry);
    return entry.build(options, config);
}

}  // namespace knap
