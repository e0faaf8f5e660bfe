// Ways of drafting as a benchmark's command line names them: STRATEGY[/DRAFT_MAX[/PLAN]], such as
// "knapspec", "lookup/4" or "static/4/a=w16+256". A list of them has commas, so the items of a plan
// are set apart by semicolons: "draft-verify/12/a2-4=skip;m7=skip".
#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "knap/types.h"

#include "base/error.h"
#include "base/quoted.h"

namespace knap::bench {

inline SpeculationOptions parse_contender(std::string_view text) {
    const std::string_view whole = text;
    const auto take = [&text] {
        const std::size_t slash = text.find('/');
        const std::string_view part = text.substr(0, slash);
        text.remove_prefix(slash == std::string_view::npos ? text.size() : slash + 1);
        return part;
    };
    SpeculationOptions options{.strategy = std::string(take())};
    if (const std::string_view length = take(); !length.empty()) {
        const auto [end, error] =
            std::from_chars(length.data(), length.data() + length.size(), options.draft_max);
        if (error != std::errc() || end != length.data() + length.size()) {
            fail("--strategies: expected STRATEGY[/DRAFT_MAX[/PLAN]], found ", in_quotes(whole));
        }
    }
    options.draft_plan = std::string(text);
    std::ranges::replace(options.draft_plan, ';', ',');
    return options;
}

}  // namespace knap::bench
