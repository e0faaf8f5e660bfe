#include "tools/profile/kept_profile.h"

#include <algorithm>
#include <iterator>

#include "search/cost/cost_model.h"

namespace knap {
namespace {

using Origin = KeptProfile::Origin;

// A spread is much larger if it is so many times as large, and so much of the time more.
constexpr double kLargerSpread = 2;
constexpr double kSmallSpread = 0.15;

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

// Whether the saved times reach as far and were disturbed less. Of two quiet profiles the saved one
// must still predict the new times: otherwise these have drifted.
bool is_better(const CostProfile& saved, const CostProfile& measured) {
    if (longest_context(saved) < longest_context(measured)) {
        return false;
    }
    const ProfileNoise before = noise_of(saved);
    const ProfileNoise now = noise_of(measured);
    if (before.is_busy() || now.is_busy()) {
        return !before.is_busy();
    }
    return now.spread > kLargerSpread * before.spread + kSmallSpread &&
           CostModel(saved).quality_on(measured.samples).is_usable();
}

}  // namespace

KeptProfile keep_profile(const CostProfile& measured, const CostProfile& saved) {
    const bool is_saved_usable = is_usable(saved);
    if (!is_usable(measured)) {
        return is_saved_usable ? KeptProfile{Origin::saved, saved} : KeptProfile{};
    }
    if (is_saved_usable && is_better(saved, measured)) {
        return {Origin::better, saved};
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
