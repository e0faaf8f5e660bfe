// Which profile later runs are to use when one was measured and another may be saved: a new one
// replaces what was measured at contexts up to its own longest, and times at longer contexts stay.
#pragma once

#include <optional>

#include "search/cost/cost_profile.h"

namespace knap {

struct KeptProfile {
    enum class Origin {
        measured,      // the new one: nothing usable is saved, or nothing at longer contexts
        extended,      // the new one, with the saved times at longer contexts
        contradicted,  // the new one: the saved one, which reaches farther, does not agree with it
        saved,         // the saved one: the new one is not usable
        none,          // neither is usable
    };
    Origin origin = Origin::none;
    std::optional<CostProfile> profile{};  // nullopt: none

    // Whether it is another one than was saved.
    bool is_new() const { return origin != Origin::saved && origin != Origin::none; }
};

// `measured` can be fitted; `saved` may be without samples.
KeptProfile keep_profile(const CostProfile& measured, const CostProfile& saved);

}  // namespace knap
