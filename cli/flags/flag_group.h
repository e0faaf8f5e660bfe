// Declares the flags of one help group. One call gives a flag its name, target, help and default. A
// bad value throws UsageError, which names what was expected and what was found.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/App.hpp>

#include "base/text.h"
#include "cli/exit_code.h"

namespace knap {

struct IntegerRange {
    int min = std::numeric_limits<int>::min();
    int max = std::numeric_limits<int>::max();
};

struct NumberRange {
    float min = std::numeric_limits<float>::lowest();
    float max = std::numeric_limits<float>::max();
    bool excludes_min = false;
};

class FlagGroup {
  public:
    FlagGroup(CLI::App& app, std::string title) : app_(app), title_(std::move(title)) {}

    // Targets must outlive parsing. The help shows a target's current value as the default.
    void integer(const std::string& names,
                 int& target,
                 IntegerRange range,
                 const std::string& help);
    void number(const std::string& names,
                float& target,
                NumberRange range,
                const std::string& help);
    void toggle(const std::string& names, bool& target, const std::string& help);

    // The value is one of a list of words.
    template <typename T>
    void choice(const std::string& names,
                T& target,
                std::span<const std::pair<std::string_view, T>> choices,
                const std::string& help);

    // Any other value: `accept` is called with each value in order, and throws UsageError for a bad
    // one.
    struct Custom {
        std::string names;
        std::string value_name;
        std::string help;
        std::string default_text;  // empty: the help shows none
    };
    void custom(const Custom& flag, const std::function<void(const std::string&)>& accept);

  private:
    CLI::App& app_;
    std::string title_;
};

// Parse all of `text` as a number within the range, for flags that `number` and `integer` do not
// cover.
double parse_number(const std::string& name, const std::string& text, NumberRange range);

int parse_integer(const std::string& name, const std::string& text, IntegerRange range);
// Parses a comma-separated list.
std::vector<int> parse_integers(const std::string& name,
                                const std::string& text,
                                IntegerRange range);

// The items of a comma-separated list. Throws UsageError for an empty one.
std::vector<std::string> parse_words(const std::string& name, const std::string& text);

// Throws UsageError for an empty path.
std::filesystem::path parse_path(const std::string& name, const std::string& text);

// The name of a flag in messages: its first long name, "--n-predict" of "-n,--n-predict,--predict".
std::string display_name(const std::string& names);

// "auto|on|off"
template <typename T>
std::string words_of(std::span<const std::pair<std::string_view, T>> choices) {
    return join(choices, "|", [](const auto& choice) { return choice.first; });
}

template <typename T>
T parse_choice(const std::string& name,
               const std::string& text,
               std::span<const std::pair<std::string_view, T>> choices) {
    for (const auto& [word, value] : choices) {
        if (word == text) {
            return value;
        }
    }
    fail_usage(name, ": expected ", words_of(choices), ", found '", text, "'");
}

template <typename T>
void FlagGroup::choice(const std::string& names,
                       T& target,
                       std::span<const std::pair<std::string_view, T>> choices,
                       const std::string& help) {
    std::string_view default_word;
    for (const auto& [word, value] : choices) {
        default_word = default_word.empty() && value == target ? word : default_word;
    }
    custom({names, words_of(choices), help, std::string(default_word)},
           [&target, choices, name = display_name(names)](const std::string& text) {
               target = parse_choice(name, text, choices);
           });
}

}  // namespace knap
