#include "decode/option_table.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text.h"

namespace knap {

namespace {

constexpr std::string_view kFlag = "--strategy-options: ";

std::string list_keys(std::span<const StrategyOptionInfo> infos) {
    std::string keys;
    for (const StrategyOptionInfo& info : infos) {
        keys += keys.empty() ? "" : ", ";
        keys += info.key;
    }
    return keys;
}

struct Setting {
    std::size_t place;  // of its key in the list
    std::string_view value;
};

Setting read_setting(std::string_view item, std::span<const StrategyOptionInfo> infos) {
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
        fail(kFlag, "expected KEY=VALUE,KEY=VALUE with keys of ", list_keys(infos), "; found ",
             in_quotes(item));
    }
    const std::string_view key = item.substr(0, equals);
    const auto info = std::ranges::find(infos, key, &StrategyOptionInfo::key);
    if (info == infos.end()) {
        fail(kFlag, "expected a key of ", list_keys(infos), "; found ", in_quotes(key));
    }
    return {static_cast<std::size_t>(info - infos.begin()), item.substr(equals + 1)};
}

// The whole of `text`, inside the range. (std::from_chars knows no leading '+' and no space.)
template <typename Number>
bool read_whole(std::string_view text, Number min, Number max, Number& value) {
    Number read{};
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, read);
    // Written so that NaN fails.
    const bool is_read = error == std::errc() && rest == end && read >= min && read <= max;
    value = is_read ? read : value;
    return is_read;
}

}  // namespace

std::vector<std::optional<std::string_view>> read_settings(
    std::string_view text, std::span<const StrategyOptionInfo> infos) {
    std::vector<std::optional<std::string_view>> values(infos.size());
    if (text.empty()) {
        return values;
    }
    for (const std::string_view item : split(text, ',')) {
        const Setting setting = read_setting(item, infos);
        if (values[setting.place]) {
            fail(kFlag, "expected ", infos[setting.place].key, " once, found it twice");
        }
        values[setting.place] = setting.value;
    }
    return values;
}

void refuse_value(const StrategyOptionInfo& info, std::string_view value) {
    fail(kFlag, "expected ", info.key, "=", info.values, "; found ", in_quotes(value));
}

void apply_draft_flags(const SpeculationOptions& options, int& draft_max, float& exit_confidence) {
    if (options.draft_max > 0) {
        draft_max = options.draft_max;
    }
    if (options.exit_confidence > 0) {
        exit_confidence = options.exit_confidence;
    }
}

bool read_integer(std::string_view text, int min, int max, int& value) {
    return read_whole(text, min, max, value);
}

bool read_number(std::string_view text, float min, float max, float& value) {
    return read_whole(text, min, max, value);
}

}  // namespace knap
