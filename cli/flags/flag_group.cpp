#include "cli/flags/flag_group.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace knap {
namespace {

std::string describe(IntegerRange range) {
    const bool is_open = range.max == std::numeric_limits<int>::max();
    return is_open ? concat("a whole number of at least ", range.min)
                   : concat("a whole number from ", range.min, " to ", range.max);
}

std::string describe(NumberRange range) {
    const bool is_open_below = range.min == std::numeric_limits<float>::lowest();
    const bool is_open_above = range.max == std::numeric_limits<float>::max();
    if (is_open_below && is_open_above) {
        return "a number";
    }
    const auto least =
        concat("a number ", range.excludes_min ? "above " : "of at least ", range.min);
    return is_open_above ? least : concat(least, " and at most ", range.max);
}

bool contains(IntegerRange range, int value) {
    return value >= range.min && value <= range.max;
}

// Returns false for NaN and infinity in any range.
bool contains(NumberRange range, double value) {
    return (range.excludes_min ? value > range.min : value >= range.min) && value <= range.max;
}

// Parses all of `text` as a T within the range.
template <typename T, typename Range>
T parse_in_range(const std::string& name, const std::string& text, Range range) {
    T value{};
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    const bool is_read = error == std::errc() && rest == end && !text.empty();
    if (!is_read || !contains(range, value)) {
        fail_usage(name, ": expected ", describe(range), ", found '", text, "'");
    }
    return value;
}

// Ignores a trailing comma. An empty text has no items.
std::vector<std::string> list_items(const std::string& text) {
    const std::vector<std::string_view> parts = split(text, ',');
    return {parts.begin(), parts.back().empty() ? parts.end() - 1 : parts.end()};
}

}  // namespace

double parse_number(const std::string& name, const std::string& text, NumberRange range) {
    return parse_in_range<double>(name, text, range);
}

int parse_integer(const std::string& name, const std::string& text, IntegerRange range) {
    return parse_in_range<int>(name, text, range);
}

std::vector<int> parse_integers(const std::string& name,
                                const std::string& text,
                                IntegerRange range) {
    std::vector<int> values;
    for (const std::string& item : list_items(text)) {
        values.push_back(parse_integer(name, item, range));
    }
    if (values.empty()) {
        fail_usage(name, ": expected at least one number, found none");
    }
    return values;
}

std::vector<std::string> parse_words(const std::string& name, const std::string& text) {
    std::vector<std::string> words = list_items(text);
    if (words.empty() || std::ranges::find(words, "") != words.end()) {
        fail_usage(name, ": expected a comma-separated list, found '", text, "'");
    }
    return words;
}

std::filesystem::path parse_path(const std::string& name, const std::string& text) {
    if (text.empty()) {
        fail_usage(name, ": expected a file, found ''");
    }
    return text;
}

std::string display_name(const std::string& names) {
    const auto first_long = names.find("--");
    return names.substr(first_long, names.find(',', first_long) - first_long);
}

void FlagGroup::integer(const std::string& names,
                        int& target,
                        IntegerRange range,
                        const std::string& help) {
    custom({names, "N", help, concat(target)},
           [&target, range, name = display_name(names)](const std::string& text) {
               target = parse_integer(name, text, range);
           });
}

void FlagGroup::number(const std::string& names,
                       float& target,
                       NumberRange range,
                       const std::string& help) {
    custom({names, "X", help, concat(target)},
           [&target, range, name = display_name(names)](const std::string& text) {
               target = parse_in_range<float>(name, text, range);
           });
}

void FlagGroup::toggle(const std::string& names, bool& target, const std::string& help) {
    app_.add_flag(names, target, help)->default_str(target ? "on" : "off")->group(title_);
}

void FlagGroup::custom(const Custom& flag, const std::function<void(const std::string&)>& accept) {
    // trigger_on_parse calls `accept` once per occurrence, so the last occurrence of a plain flag
    // wins and lists grow.
    app_.add_option_function<std::string>(flag.names, accept, flag.help)
        ->trigger_on_parse()
        ->type_name(flag.value_name)
        ->default_str(flag.default_text)
        ->group(title_);
}

}  // namespace knap
