// The settings of a strategy (SpeculationOptions::settings). A strategy declares them in one table:
// key, accepted values, meaning and setter. Help texts and error messages are made from the table.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "knap/types.h"

namespace knap {

template <typename Options>
struct StrategyOption {
    StrategyOptionInfo info;
    // Returns false when `value` is not one of the accepted values.
    bool (*set)(Options& options, std::string_view value);
};

[[noreturn]] void refuse_value(const StrategyOptionInfo& info, std::string_view value);

// Parse all of `text`. They return false and leave `value` unchanged if it is not a number within
// the range.
bool read_integer(std::string_view text, int min, int max, int& value);
bool read_number(std::string_view text, float min, float max, float& value);

template <typename Options, std::size_t Size>
std::array<StrategyOptionInfo, Size> infos_of(
    const std::array<StrategyOption<Options>, Size>& table) {
    std::array<StrategyOptionInfo, Size> infos;
    std::ranges::transform(table, infos.begin(), &StrategyOption<Options>::info);
    return infos;
}

template <typename Options, std::size_t First, std::size_t Second>
constexpr auto join_tables(const std::array<StrategyOption<Options>, First>& first,
                           const std::array<StrategyOption<Options>, Second>& second) {
    std::array<StrategyOption<Options>, First + Second> all{};
    std::ranges::copy(second, std::ranges::copy(first, all.begin()).out);
    return all;
}

// Applies `settings` to `options` in the order of the table. Unknown keys are ignored here:
// make_strategy() rejects them. Throws when a value is not accepted.
template <typename Options, std::size_t Size>
void apply_settings(const StrategySettings& settings,
                    const std::array<StrategyOption<Options>, Size>& table,
                    Options& options) {
    for (const StrategyOption<Options>& option : table) {
        const auto found = settings.find(option.info.key);
        if (found != settings.end() && !option.set(options, found->second)) {
            refuse_value(option.info, found->second);
        }
    }
}

// The longest draft that the request allows, or the strategy's own limit if the request sets none.
inline int draft_max_or(const SpeculationOptions& options, int own) {
    return options.draft_max > 0 ? options.draft_max : own;
}

// The setting `exit-confidence`, for options with a member `exit_confidence`.
template <typename Options>
constexpr StrategyOption<Options> exit_confidence_option(std::string_view help) {
    return {{"exit-confidence", "0..1", help}, [](Options& options, std::string_view text) {
                return read_number(text, 0, 1, options.exit_confidence);
            }};
}

}  // namespace knap
