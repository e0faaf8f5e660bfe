#include "measure/contenders.h"

#include <algorithm>
#include <charconv>

#include "knap/knap.h"

#include "base/error.h"
#include "base/quoted.h"

namespace knap {
namespace {

// Takes what `rest` has before its first slash, with the slash.
std::string_view take_part(std::string_view& rest) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
    return part;
}

// Of an empty text 0: the strategy's own.
int parse_length(std::string_view length, std::string_view whole) {
    int n = 0;
    const char* end = length.data() + length.size();
    const auto [rest, error] = std::from_chars(length.data(), end, n);
    if (!length.empty() && (error != std::errc() || rest != end || n < 0 || n > kMaxDraft)) {
        fail("--strategies: expected STRATEGY[/DRAFT_MAX[/PLAN]] with a length of at most ",
             kMaxDraft, ", found ", in_quotes(whole));
    }
    return n;
}

}  // namespace

bool is_strategy(std::string_view name) {
    return std::ranges::find(strategies(), name, &StrategyInfo::name) != strategies().end();
}

std::string strategy_names() {
    std::string names;
    for (const StrategyInfo& strategy : strategies()) {
        names += concat(names.empty() ? "" : "|", strategy.name);
    }
    return names;
}

Contender parse_contender(std::string_view text) {
    Contender contender{.name = std::string(text), .speculation = {}};
    SpeculationOptions& options = contender.speculation;
    options.strategy = take_part(text);
    if (!is_strategy(options.strategy)) {
        fail("--strategies: expected ", strategy_names(), ", found ", in_quotes(options.strategy));
    }
    options.draft_max = parse_length(take_part(text), contender.name);
    options.draft_plan = text;
    std::ranges::replace(options.draft_plan, ';', ',');
    return contender;
}

std::string describe_options(const SpeculationOptions& options) {
    std::string text;
    const auto add = [&text](const auto&... parts) {
        text += concat(text.empty() ? "" : " ", parts...);
    };
    if (options.draft_max > 0) {
        add("draft_max=", options.draft_max);
    }
    if (!options.draft_plan.empty()) {
        add("plan=", options.draft_plan);
    }
    if (options.assume_acceptance >= 0) {
        add("assume_acceptance=", options.assume_acceptance);
    }
    return text;
}

}  // namespace knap
