#include "tools/profile/kept_profile.h"

#include <algorithm>
#include <iterator>

#include "search/cost/cost_model.h"

namespace knap {
namespace {

using Origin = KeptProfile::Origin;

bool is_usable(const CostProfile& profile) {
    return can_fit(profile) && CostModel(profile).quality().is_usable();
}

CostProfile with_longer_contexts(const CostProfile& measured, const CostProfile& saved) {
    CostProfile both = measured;
    std::ranges::copy_if(
        saved.samples, std::back_inserter(both.samples),
        [longest = longest_context(measured)](int n) { return n > longest; },
        &CostSample::n_context);
    return both;
}

}  // namespace

KeptProfile keep_profile(const CostProfile& measured, const CostProfile& saved) {
    const bool is_saved_usable = is_usable(saved);
    if (!is_usable(measured)) {
        return is_saved_usable ? KeptProfile{Origin::saved, saved} : KeptProfile{};
    }
    if (!is_saved_usable || longest_context(saved) <= longest_context(measured)) {
        return {Origin::measured, measured};
    }
    // Samples from two different states of the machine describe neither.
    if (!CostModel(saved).quality_on(measured.samples).is_usable()) {
        return {Origin::contradicted, measured};
    }
    return {Origin::extended, with_longer_contexts(measured, saved)};
}

}  // namespace knap
