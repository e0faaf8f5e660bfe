// Decides which profile later runs use when a new one was measured and another may be saved. The
// new one replaces all samples up to its longest context, unless the saved ones are better: those
// of a busy machine replace none of a quiet one, nor does a much larger spread a small one, unless
// times have drifted. Saved samples at longer contexts are kept.
#pragma once

#include <optional>

#include "search/cost/cost_profile.h"

namespace knap {

struct KeptProfile {
    enum class Origin {
        measured,      // the new one: nothing usable is saved, or nothing at longer contexts
        extended,      // the new one, with the saved times at longer contexts
        contradicted,  // the new one: the saved one reaches longer contexts but disagrees with it
        saved,         // the saved one: the new one is not usable
        better,        // the saved one: it was measured on a quieter machine
        none,          // neither is usable
    };
    Origin origin = Origin::none;
    std::optional<CostProfile> profile{};  // nullopt: none

    // True if it differs from the saved profile.
    bool is_new() const {
        return origin != Origin::saved && origin != Origin::better && origin != Origin::none;
    }
};

// `measured` can be fitted; `saved` may have no samples.
KeptProfile keep_profile(const CostProfile& measured, const CostProfile& saved);

}  // namespace knap
