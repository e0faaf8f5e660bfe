// A strategy's own settings, written "KEY=VALUE,KEY=VALUE" (SpeculationOptions::strategy_options).
// A strategy declares them in one table: the key, the values that it takes, what it means and how
// it is set. What help texts and messages say follows from the table.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "knap/types.h"

namespace knap {

template <typename Options>
struct StrategyOption {
    StrategyOptionInfo info;
    // False: not one of the values.
    bool (*set)(Options& options, std::string_view value);
};

// The values that `text` gives the keys of `infos`, in the order of `infos`; none where it is
// silent. Throws when it has another form, or names a key that is not listed or one twice.
std::vector<std::optional<std::string_view>> read_settings(
    std::string_view text, std::span<const StrategyOptionInfo> infos);
[[noreturn]] void refuse_value(const StrategyOptionInfo& info, std::string_view value);

// What --draft-max and --exit-confidence say, where they say anything, in place of the strategy's
// own.
void apply_draft_flags(const SpeculationOptions& options, int& draft_max, float& exit_confidence);

// Values. False: the text is something else.
bool read_integer(std::string_view text, int min, int max, int& value);
bool read_number(std::string_view text, float min, float max, float& value);

template <typename Options, std::size_t Size>
std::array<StrategyOptionInfo, Size> infos_of(
    const std::array<StrategyOption<Options>, Size>& table) {
    std::array<StrategyOptionInfo, Size> infos;
    for (std::size_t i = 0; i < Size; ++i) {
        infos[i] = table[i].info;
    }
    return infos;
}

// Changes `options` as `text` says, in the order of the table: the order of the text means nothing.
// Throws as read_settings() does, and when a value is not one of its key's.
template <typename Options, std::size_t Size>
void apply_settings(std::string_view text,
                    const std::array<StrategyOption<Options>, Size>& table,
                    Options& options) {
    const auto infos = infos_of(table);
    const auto values = read_settings(text, infos);
    for (std::size_t i = 0; i < Size; ++i) {
        if (values[i] && !table[i].set(options, *values[i])) {
            refuse_value(infos[i], *values[i]);
        }
    }
}

}  // namespace knap
