#include "tools/profile/kept_profile.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "search/cost/cost_model.h"
#include "support/fake_machine.h"

namespace knap::test::kept_profile_test {
namespace {

using Origin = KeptProfile::Origin;

constexpr int kShort = 512;
constexpr int kLong = 8192;
constexpr double kBusy = 0.9;

// `mark` identifies the samples of a profile.
CostProfile profile_up_to(int max_context, int mark, double noise = 0) {
    const FakeMachine machine = plain_machine(30);
    CostProfile profile =
        machine.profile(profile_probes(machine.layer_classes, max_context, 16), noise);
    for (CostSample& sample : profile.samples) {
        sample.n_measured = mark;
    }
    return profile;
}

CostProfile nothing() {
    return {.layer_classes = plain_machine(30).layer_classes};
}

auto n_marked(const KeptProfile& kept, int mark) {
    return std::ranges::count(kept.profile->samples, mark, &CostSample::n_measured);
}

TEST(KeptProfile, IsTheMeasuredOneWhenNothingIsSaved) {
    const KeptProfile kept = keep_profile(profile_up_to(kShort, 1), nothing());
    EXPECT_EQ(kept.origin, Origin::measured);
    EXPECT_TRUE(kept.is_new());
    EXPECT_EQ(kept.profile->samples.size(), profile_up_to(kShort, 1).samples.size());
}

TEST(KeptProfile, ReplacesASavedProfileThatReachesNoFarther) {
    for (const int saved_context : {kShort, kLong}) {
        const KeptProfile kept =
            keep_profile(profile_up_to(kLong, 1), profile_up_to(saved_context, 2));
        EXPECT_EQ(kept.origin, Origin::measured);
        EXPECT_EQ(n_marked(kept, 2), 0);
    }
}

TEST(KeptProfile, KeepsSavedTimesAtLongerContexts) {
    const CostProfile saved = profile_up_to(kLong, 2);
    const KeptProfile kept = keep_profile(profile_up_to(kShort, 1), saved);
    EXPECT_EQ(kept.origin, Origin::extended);
    EXPECT_TRUE(kept.is_new());
    EXPECT_EQ(longest_context(*kept.profile), kLong);
    EXPECT_EQ(n_marked(kept, 1),
              static_cast<std::ptrdiff_t>(profile_up_to(kShort, 1).samples.size()));
    EXPECT_GT(n_marked(kept, 2), 0);
    for (const CostSample& sample : kept.profile->samples) {
        EXPECT_EQ(sample.n_context > kShort, sample.n_measured == 2);
    }
    EXPECT_NEAR(CostModel(*kept.profile).plain_step_ms(kLong),
                CostModel(saved).plain_step_ms(kLong), 0.1);
}

TEST(KeptProfile, DropsSavedTimesThatDisagree) {
    CostProfile saved = profile_up_to(kLong, 2);
    for (CostSample& sample : saved.samples) {
        sample.ms *= 1.5;
    }
    const KeptProfile kept = keep_profile(profile_up_to(kShort, 1), saved);
    EXPECT_EQ(kept.origin, Origin::contradicted);
    EXPECT_TRUE(kept.is_new());
    EXPECT_EQ(n_marked(kept, 2), 0);
}

TEST(KeptProfile, IsTheSavedOneWhenTheMachineWasBusy) {
    const CostProfile busy = profile_up_to(kLong, 1, kBusy);
    ASSERT_FALSE(CostModel(busy).quality().is_usable());
    const KeptProfile kept = keep_profile(busy, profile_up_to(kShort, 2));
    EXPECT_EQ(kept.origin, Origin::saved);
    EXPECT_FALSE(kept.is_new());
    EXPECT_EQ(n_marked(kept, 1), 0);
}

TEST(KeptProfile, IsNoneWhenNothingIsUsable) {
    for (const CostProfile& saved : {nothing(), profile_up_to(kLong, 2, kBusy)}) {
        const KeptProfile kept = keep_profile(profile_up_to(kLong, 1, kBusy), saved);
        EXPECT_EQ(kept.origin, Origin::none);
        EXPECT_FALSE(kept.is_new());
        EXPECT_FALSE(kept.profile.has_value());
    }
}

TEST(KeptProfile, DropsSavedTimesOfABusyMachine) {
    const KeptProfile kept = keep_profile(profile_up_to(kShort, 1), profile_up_to(kLong, 2, kBusy));
    EXPECT_EQ(kept.origin, Origin::measured);
    EXPECT_EQ(n_marked(kept, 2), 0);
}

CostProfile with_noise(CostProfile profile, bool was_busy, double spread) {
    for (CostSample& sample : profile.samples) {
        sample.was_busy = was_busy;
        sample.spread_ms = spread * sample.ms;
    }
    return profile;
}

TEST(KeptProfile, IsTheSavedOneIfThatWasMeasuredOnAQuieterMachine) {
    const CostProfile quiet = with_noise(profile_up_to(kLong, 1), false, 0.01);
    const CostProfile busy = with_noise(profile_up_to(kLong, 2), true, 0.01);
    EXPECT_EQ(keep_profile(busy, quiet).origin, Origin::better);
    EXPECT_FALSE(keep_profile(busy, quiet).is_new());
    EXPECT_EQ(n_marked(keep_profile(busy, quiet), 2), 0);
    EXPECT_EQ(keep_profile(quiet, busy).origin, Origin::measured);
    EXPECT_EQ(keep_profile(busy, busy).origin, Origin::measured);
    const CostProfile further = with_noise(profile_up_to(2 * kLong, 2), true, 0.01);
    EXPECT_EQ(keep_profile(further, quiet).origin, Origin::measured) << "the saved one is short";
}

TEST(KeptProfile, ALargerSpreadReplacesASmallOneOnlyAfterADrift) {
    const CostProfile steady = with_noise(profile_up_to(kLong, 1), false, 0.01);
    CostProfile shaky = with_noise(profile_up_to(kLong, 2), false, 0.25);
    EXPECT_EQ(keep_profile(shaky, steady).origin, Origin::better);
    for (CostSample& sample : shaky.samples) {
        sample.ms *= 1.5;
        sample.spread_ms *= 1.5;
    }
    EXPECT_EQ(keep_profile(shaky, steady).origin, Origin::measured);
}

}  // namespace
}  // namespace knap::test::kept_profile_test
