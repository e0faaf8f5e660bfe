#include "decode/strategy.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text.h"
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
#include "model/config.h"

namespace knap {

namespace {

struct StrategyEntry {
    StrategyInfo info;
    std::unique_ptr<Strategy> (*build)(const SpeculationOptions& options,
                                       const StrategyParts& parts);
    std::span<const StrategyOptionInfo> (*options)() = nullptr;  // null: it has no settings
};

constexpr std::array kStrategies = {
    StrategyEntry{
        .info = {.name = "autoregressive", .summary = "plain decoding, without drafts"},
        .build = build_autoregressive,
    },
    StrategyEntry{
        .info = {.name = "static", .summary = "draft with a fixed plan"},
        .build = build_static_plan,
        .options = static_plan_option_infos,
    },
    StrategyEntry{
        .info = {.name = "lookup",
                 .summary = "copy what followed the last few tokens earlier in the text"},
        .build = build_lookup,
    },
    StrategyEntry{
        .info = {.name = "cascade",
                 .summary =
                     "copy as lookup does, then check and extend the copy with a fixed plan"},
        .build = build_cascade,
        .options = static_plan_option_infos,
    },
    StrategyEntry{
        .info = {.name = "knapspec",
                 .summary =
                     "choose the fastest draft source by measured cost and acceptance, or none"},
        .build = build_knapspec,
        .options = knapspec_option_infos,
    },
    StrategyEntry{
        .info = {.name = "knapspec-paper",
                 .summary = "KnapSpec as published: knapsack search for modules to skip"},
        .build = build_knapspec_paper,
        .options = paper_option_infos,
    },
    StrategyEntry{
        .info = {.name = "clasp",
                 .summary = "CLaSp: search for layers to skip, on the last token",
                 .min_layers = 2},
        .build = build_clasp,
        .options = clasp_option_infos,
    },
    StrategyEntry{
        .info = {.name = "swift",
                 .summary = "SWIFT: search for modules to skip, scored on the first answer tokens",
                 .min_layers = 4},
        .build = build_swift,
        .options = swift_option_infos,
    },
    StrategyEntry{
        .info = {.name = "del",
                 .summary = "DEL: early exit after the layer with the best expected speed",
                 .min_layers = 2},
        .build = build_del,
        .options = del_option_infos,
    },
    StrategyEntry{
        .info = {.name = "draft-verify",
                 .summary =
                     "Draft&Verify: fixed plan from `knap search`, adaptive exit confidence"},
        .build = build_draft_verify,
        .options = draft_verify_option_infos,
    },
    StrategyEntry{
        .info = {.name = "asd",
                 .summary = "ASD: skip the attention modules that matter least on the prompt"},
        .build = build_asd,
        .options = asd_option_infos,
    },
    StrategyEntry{
        .info = {.name = "layerskip", .summary = "LayerSkip: early exit after a fixed layer"},
        .build = build_layerskip,
        .options = layerskip_option_infos,
    },
    StrategyEntry{
        .info = {.name = "kangaroo",
                 .summary = "Kangaroo: early exit after a fixed layer, with a trained adapter",
                 .needs_adapter = true},
        .build = build_kangaroo,
        .options = kangaroo_option_infos,
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
        fail("`.strategy`: expected one of ", join(list_strategies(), ", ", &StrategyInfo::name),
             "; found ", in_quotes(name));
    }
    return *found;
}

void check_ranges(const SpeculationOptions& options) {
    if (options.draft_max < 0 || options.draft_max > kMaxDraft) {
        fail("`.draft_max`: expected 0..", kMaxDraft, ", found ", options.draft_max);
    }
    // Written so that NaN fails.
    if (!(options.assume_acceptance <= 1)) {
        fail("`.assume_acceptance`: expected 0..1, found ", options.assume_acceptance);
    }
}

bool has_setting(const StrategyInfo& strategy, std::string_view key) {
    return std::ranges::find(strategy.options, key, &StrategyOptionInfo::key) !=
           strategy.options.end();
}

[[noreturn]] void refuse_setting(const StrategyInfo& strategy, std::string_view key) {
    std::vector<StrategyInfo> owners;
    std::ranges::copy_if(list_strategies(), std::back_inserter(owners),
                         [&](const StrategyInfo& other) { return has_setting(other, key); });
    if (!owners.empty()) {
        fail("`.settings[", key, "]`: expected a strategy with this setting (",
             join(owners, ", ", &StrategyInfo::name), "), found ", strategy.name);
    }
    fail("`.settings`: expected ",
         strategy.options.empty()
             ? "none"
             : concat("one of ", join(strategy.options, ", ", &StrategyOptionInfo::key)),
         " for strategy ", strategy.name, ", found ", in_quotes(key));
}

// A setting without effect is a mistake that the user should know about.
void check_settings(const SpeculationOptions& options, const StrategyInfo& strategy) {
    for (const auto& [key, value] : options.settings) {
        if (!has_setting(strategy, key)) {
            refuse_setting(strategy, key);
        }
    }
}

}  // namespace

void Strategy::begin(const RequestStart& /*request*/) {}

void Strategy::observe(const RoundOutcome& /*outcome*/) {}

bool Strategy::use_idle_time(std::span<const Token> /*text*/) {
    return false;
}

StrategySettings parse_settings(std::string_view text) {
    StrategySettings settings;
    if (text.empty()) {
        return settings;
    }
    for (const std::string_view item : split(text, ',')) {
        const std::size_t equals = item.find('=');
        if (equals == std::string_view::npos) {
            fail("`.settings`: expected KEY=VALUE,KEY=VALUE, found ", in_quotes(item));
        }
        const std::string key(item.substr(0, equals));
        if (!settings.emplace(key, item.substr(equals + 1)).second) {
            fail("`.settings`: expected ", key, " once, found it twice");
        }
    }
    return settings;
}

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
        fail("`.strategy`: expected a model of ", entry.info.min_layers, " layers or more for ",
             entry.info.name, ", found ", parts.config.n_layers);
    }
    check_ranges(options);
    check_settings(options, info_of(entry));
    return entry.build(options, parts);
}

}  // namespace knap
