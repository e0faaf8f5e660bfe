#include "decode/knapspec/options.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "decode/option_table.h"

namespace knap {

namespace {

using Knapsack = PlanScoutOptions::Knapsack;

// Attention relies on the first tokens of a text whatever they say (docs/methods.md, "Plans and
// levels").
constexpr int kSinks = 16;
constexpr std::array kRecentRows = {64, 128, 256, 512, 1024};
constexpr std::size_t kMaxSizes = 8;

bool read_switch(std::string_view text, bool& value) {
    value = text == "on";
    return text == "on" || text == "off";
}

// Parses sizes such as "64/256".
bool set_windows(KnapspecOptions& options, std::string_view text) {
    std::vector<Window>& windows = options.scout.windows;
    windows.clear();
    while (windows.size() <= kMaxSizes) {
        const std::size_t slash = text.find('/');
        int recent = 0;
        if (!read_integer(text.substr(0, slash), 1, kMaxWindowRows - kSinks, recent)) {
            return false;
        }
        windows.push_back({.sinks = kSinks, .recent = recent});
        if (slash == std::string_view::npos) {
            break;
        }
        text.remove_prefix(slash + 1);
    }
    return windows.size() <= kMaxSizes;
}

bool set_knapsack(KnapspecOptions& options, std::string_view text) {
    options.scout.knapsack = text == "always"  ? Knapsack::always
                             : text == "never" ? Knapsack::never
                                               : Knapsack::when_it_pays;
    return text == "auto" || text == "always" || text == "never";
}

using KnapspecOption = StrategyOption<KnapspecOptions>;

constexpr std::array kOptions = {
    KnapspecOption{
        {"budget", "0..1", "share of the time for measuring and searching (default: 0.01)"},
        [](KnapspecOptions& options, std::string_view text) {
            return read_number(text, 0, 1, options.budget);
        }},
    KnapspecOption{{"margin", "0..1",
                    "gain over plain decoding that a draft source must promise (default: 0.03)"},
                   [](KnapspecOptions& options, std::string_view text) {
                       return read_number(text, 0, 1, options.scout.margin);
                   }},
    KnapspecOption{{"copies", "on|off", "allow copies of earlier text (default: on)"},
                   [](KnapspecOptions& options, std::string_view text) {
                       return read_switch(text, options.copies);
                   }},
    KnapspecOption{{"plans", "on|off", "allow drafts with plans (default: on)"},
                   [](KnapspecOptions& options, std::string_view text) {
                       return read_switch(text, options.plans);
                   }},
    KnapspecOption{
        {"cascade", "on|off", "allow copies that a plan checks and extends (default: on)"},
        [](KnapspecOptions& options, std::string_view text) {
            return read_switch(text, options.cascades);
        }},
    KnapspecOption{{"memory", "on|off", "begin with what earlier runs have learned (default: on)"},
                   [](KnapspecOptions& options, std::string_view text) {
                       return read_switch(text, options.memory);
                   }},
    KnapspecOption{{"windows", "N/N/...", "window sizes of plans (default: 64/128/256/512/1024)"},
                   set_windows},
    KnapspecOption{{"knapsack", "auto|always|never",
                    "search for plans when it pays, always or never (default: auto)"},
                   set_knapsack},
};

}  // namespace

KnapspecOptions read_knapspec_options(const SpeculationOptions& options) {
    KnapspecOptions own;
    for (const int recent : kRecentRows) {
        own.scout.windows.push_back({.sinks = kSinks, .recent = recent});
    }
    apply_settings(options.settings, kOptions, own);
    own.scout.max_length = draft_max_or(options, own.scout.max_length);
    own.max_copy = draft_max_or(options, own.max_copy);
    return own;
}

bool begins_with_memory(const SpeculationOptions& options) {
    return options.strategy != "knapspec" || read_knapspec_options(options).memory;
}

std::span<const StrategyOptionInfo> knapspec_option_infos() {
    static const auto infos = infos_of(kOptions);
    return infos;
}

}  // namespace knap
