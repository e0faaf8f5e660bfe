#include "tools/measure/contenders.h"

#include <algorithm>
#include <charconv>

#include "knap/knap.h"

#include "base/error.h"
#include "base/quoted.h"

namespace knap {
namespace {

[[noreturn]] void refuse_form(std::string_view whole) {
    fail("--strategies: expected STRATEGY[(OPTIONS)][/DRAFT_MAX[/PLAN]] with a length of at most ",
         kMaxDraft, ", found ", in_quotes(whole));
}

// Removes from `rest`, and returns, the text before the first character of `ends`.
std::string_view take_until(std::string_view& rest, std::string_view ends) {
    const std::string_view part = rest.substr(0, rest.find_first_of(ends));
    rest.remove_prefix(part.size());
    return part;
}

// Removes the next part and the slash before it; empty when nothing is left.
std::string_view take_part(std::string_view& rest, std::string_view whole) {
    if (rest.empty()) {
        return {};
    }
    if (!rest.starts_with('/')) {
        refuse_form(whole);
    }
    rest.remove_prefix(1);
    return take_until(rest, "/");
}

// Removes "(OPTIONS)" if `rest` begins with it; slashes inside it do not separate parts.
std::string_view take_options(std::string_view& rest, std::string_view whole) {
    if (!rest.starts_with('(')) {
        return {};
    }
    rest.remove_prefix(1);
    const std::string_view options = take_until(rest, ")");
    if (rest.empty()) {
        refuse_form(whole);
    }
    rest.remove_prefix(1);
    return options;
}

std::string with_commas(std::string_view items) {
    std::string text(items);
    std::ranges::replace(text, ';', ',');
    return text;
}

// 0, the strategy's default, for an empty text.
int parse_length(std::string_view length, std::string_view whole) {
    int n = 0;
    const char* end = length.data() + length.size();
    const auto [rest, error] = std::from_chars(length.data(), end, n);
    if (!length.empty() && (error != std::errc() || rest != end || n < 0 || n > kMaxDraft)) {
        refuse_form(whole);
    }
    return n;
}

}  // namespace

bool is_strategy(std::string_view name) {
    return std::ranges::find(strategies(), name, &StrategyInfo::name) != strategies().end();
}

std::string strategy_names() {
    return join(strategies(), "|", &StrategyInfo::name);
}

Contender parse_contender(std::string_view text) {
    Contender contender{.name = std::string(text), .speculation = {}};
    SpeculationOptions& options = contender.speculation;
    options.strategy = take_until(text, "(/");
    if (!is_strategy(options.strategy)) {
        fail("--strategies: expected ", strategy_names(), ", found ", in_quotes(options.strategy));
    }
    options.settings = parse_settings(with_commas(take_options(text, contender.name)));
    options.draft_max = parse_length(take_part(text, contender.name), contender.name);
    if (std::string plan = with_commas(take_part(text, contender.name)); !plan.empty()) {
        options.settings["plan"] = std::move(plan);
    }
    if (!text.empty()) {
        refuse_form(contender.name);
    }
    return contender;
}

std::string describe_options(const SpeculationOptions& options) {
    std::vector<std::string> parts;
    for (const auto& [key, value] : options.settings) {
        parts.push_back(concat(key, "=", value));
    }
    if (options.draft_max > 0) {
        parts.push_back(concat("draft_max=", options.draft_max));
    }
    if (options.assume_acceptance >= 0) {
        parts.push_back(concat("assume_acceptance=", options.assume_acceptance));
    }
    return join(parts, " ");
}

}  // namespace knap
