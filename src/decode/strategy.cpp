#include "decode/strategy.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/name_list.h"
#include "base/quoted.h"
#include "decode/asd/asd.h"
#include "decode/autoregressive/autoregressive.h"
#include "decode/cascade/cascade.h"
#include "decode/clasp/clasp.h"
#include "decode/del/del.h"
#include "decode/draft_verify/draft_verify.h"
#include "decode/kangaroo/kangaroo.h"
#include "decode/knapspec/knapspec.h"
#include "decode/knapspec_paper/knapspec_paper.h"
#include "decode/layerskip/layerskip.h"
#include "decode/lookup/lookup.h"
#include "decode/static/static_plan.h"
#include "decode/swift/swift.h"

namespace knap {

namespace {

struct StrategyEntry {
    StrategyInfo info;
    bool drafts_with_model;  // options about drafting with the model have a meaning
    std::unique_ptr<Strategy> (*build)(const SpeculationOptions& options,
                                       const StrategyParts& parts);
    bool finds_plan = false;  // so that naming one has no meaning, nor has a width
    std::span<const StrategyOptionInfo> (*options)() = nullptr;  // its own, where it has any
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
    StrategyEntry{
        .info = {.name = "cascade",
                 .summary = "lookup guesses, and the modules of --draft-plan check and go on"},
        .drafts_with_model = true,
        .build = build_cascade,
    },
    StrategyEntry{
        .info = {.name = "knapspec",
                 .summary = "measure, search, and draft whichever way pays, or not at all"},
        .drafts_with_model = false,
        .build = build_knapspec,
        .options = knapspec_option_infos,
    },
    StrategyEntry{
        .info = {.name = "knapspec-paper",
                 .summary = "KnapSpec as published: search which modules to skip"},
        .drafts_with_model = true,
        .build = build_knapspec_paper,
        .finds_plan = true,
        .options = paper_option_infos,
    },
    StrategyEntry{
        .info = {.name = "clasp",
                 .summary = "CLaSp: search which layers to skip, on the last token",
                 .min_layers = 2},
        .drafts_with_model = true,
        .build = build_clasp,
        .finds_plan = true,
        .options = clasp_option_infos,
    },
    StrategyEntry{
        .info = {.name = "swift",
                 .summary = "SWIFT: try sets of modules to skip on the answer's first tokens",
                 .min_layers = 4},
        .drafts_with_model = true,
        .build = build_swift,
        .finds_plan = true,
        .options = swift_option_infos,
    },
    StrategyEntry{
        .info = {.name = "del",
                 .summary = "DEL: leave early, after the layer that has agreed best for its price",
                 .min_layers = 2},
        .drafts_with_model = false,
        .build = build_del,
        .options = del_option_infos,
    },
    StrategyEntry{
        .info = {.name = "draft-verify",
                 .summary =
                     "Draft&Verify: a plan that `knap search` found, and an exit that adapts"},
        .drafts_with_model = true,
        .build = build_draft_verify,
        .options = draft_verify_option_infos,
    },
    StrategyEntry{
        .info = {.name = "asd",
                 .summary = "ASD: leave out the attentions that matter least on the prompt"},
        .drafts_with_model = true,
        .build = build_asd,
        .finds_plan = true,
        .options = asd_option_infos,
    },
    StrategyEntry{
        .info = {.name = "layerskip",
                 .summary = "LayerSkip: leave early, after the same layer in every round"},
        .drafts_with_model = true,
        .build = build_layerskip,
        .options = layerskip_option_infos,
    },
    StrategyEntry{
        .info = {.name = "kangaroo",
                 .summary = "Kangaroo: draft with the first layers and the adapter of --adapter",
                 .needs_adapter = true},
        .drafts_with_model = true,
        .build = build_kangaroo,
        .finds_plan = true,
    },
};

StrategyInfo info_of(const StrategyEntry& entry) {
    StrategyInfo info = entry.info;
    if (entry.options != nullptr) {
        info.options = entry.options();
    }
    return info;
}

const StrategyEntry& find_strategy(std::string_view name) {
    const auto found = std::ranges::find(
        kStrategies, name, [](const StrategyEntry& entry) { return entry.info.name; });
    if (found == kStrategies.end()) {
        fail("--strategy: expected one of ", list_names(list_strategies()), "; found ",
             in_quotes(name));
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
    const bool takes_plan = entry.drafts_with_model && !entry.finds_plan;
    const auto refuse = [&](const char* flag, const char* whose) {
        fail(flag, ": expected a strategy that ", whose, "; found ", entry.info.name);
    };
    if (!options.draft_plan.empty() && !takes_plan) {
        refuse(options.plan_file.empty() ? "--draft-plan" : "--plan-file",
               "drafts with a given plan, such as static");
    }
    if (options.draft_width != 1 && !takes_plan) {
        refuse("--draft-width", "drafts with a given plan, such as static");
    }
    if (options.exit_confidence != 0 && !entry.drafts_with_model) {
        refuse("--exit-confidence", "ends drafts at a given confidence, such as static");
    }
    if (!options.strategy_options.empty() && entry.options == nullptr) {
        refuse("--strategy-options", "has options of its own, such as knapspec-paper");
    }
}

}  // namespace

void Strategy::begin(const RequestStart& /*request*/) {}

void Strategy::observe(const RoundOutcome& /*outcome*/) {}

std::span<const StrategyInfo> list_strategies() {
    static const auto infos = [] {
        std::array<StrategyInfo, kStrategies.size()> all;
        std::ranges::transform(kStrategies, all.begin(), info_of);
        return all;
    }();
    return infos;
}

std::unique_ptr<Strategy> make_strategy(const SpeculationOptions& options,
                                        const StrategyParts& parts) {
    const StrategyEntry& entry = find_strategy(options.strategy);
    if (parts.config.n_layers < entry.info.min_layers) {
        fail("--strategy: expected a model of ", entry.info.min_layers, " layers or more for ",
             entry.info.name, ", found ", parts.config.n_layers);
    }
    check_ranges(options);
    check_fit(options, entry);
    return entry.build(options, parts);
}

}  // namespace knap
