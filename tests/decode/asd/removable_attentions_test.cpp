#include "decode/asd/removable_attentions.h"

#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::removable_attentions_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

//                                  layer 0     1     2     3     4     5     6     7
const std::vector<double> kCosines = {1.0, 0.90, 0.98, 0.99, 0.97, 0.50, 0.96, 1.0};

TEST(RemovableAttentions, ReachTheCosineAndAreNeitherFirstNorLast) {
    EXPECT_THAT(removable_attentions(kCosines, {.least_cosine = 0.75f}),
                ElementsAre(1, 2, 3, 4, 6));
    EXPECT_THAT(removable_attentions(kCosines, {.least_cosine = 0.965f}), ElementsAre(2, 3, 4));
    EXPECT_THAT(removable_attentions(kCosines, {.least_cosine = -1}),
                ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(removable_attentions(kCosines, {.least_cosine = 1}), IsEmpty());
}

TEST(RemovableAttentions, CosineEqualToTheThresholdIsEnough) {
    EXPECT_THAT(removable_attentions(std::vector{1.0, 0.5, 0.25, 1.0}, {.least_cosine = 0.5f}),
                ElementsAre(1));
}

TEST(RemovableAttentions, LimitOnTheTotalKeepsTheHighestCosines) {
    EXPECT_THAT(removable_attentions(kCosines, {.least_cosine = 0.75f, .max_total = 1}),
                ElementsAre(3));
    EXPECT_THAT(removable_attentions(kCosines, {.least_cosine = 0.75f, .max_total = 4}),
                ElementsAre(2, 3, 4, 6));
    EXPECT_THAT(removable_attentions(kCosines, {.least_cosine = 0.75f, .max_total = 9}),
                ElementsAre(1, 2, 3, 4, 6));
}

// Layer 3 is removed first. Removing its neighbours 2 and 4 would make runs of two and three.
TEST(RemovableAttentions, LimitOnRunsCountsNeighboursOnBothSides) {
    EXPECT_THAT(removable_attentions(kCosines, {.least_cosine = 0.75f, .max_run = 1}),
                ElementsAre(1, 3, 6));
    EXPECT_THAT(removable_attentions(kCosines, {.least_cosine = 0.75f, .max_run = 2}),
                ElementsAre(2, 3, 6));
    EXPECT_THAT(removable_attentions(kCosines, {.least_cosine = 0.75f, .max_run = 3}),
                ElementsAre(2, 3, 4, 6));
    EXPECT_THAT(removable_attentions(kCosines, {.least_cosine = -1, .max_run = 5}),
                ElementsAre(1, 2, 3, 4, 6));
}

TEST(RemovableAttentions, BothLimitsApply) {
    EXPECT_THAT(
        removable_attentions(kCosines, {.least_cosine = 0.75f, .max_run = 2, .max_total = 2}),
        ElementsAre(2, 3));
}

TEST(RemovableAttentions, LowerLayerGoesFirstWhenCosinesAreEqual) {
    const std::vector<double> equal(6, 0.995);
    EXPECT_THAT(removable_attentions(equal, {.max_total = 2}), ElementsAre(1, 2));
}

TEST(RemovableAttentions, SmallModelsHaveNone) {
    for (const std::size_t n_layers : {0u, 1u, 2u}) {
        EXPECT_THAT(removable_attentions(std::vector(n_layers, 1.0), {.least_cosine = -1}),
                    IsEmpty());
    }
}

TEST(RemovableAttentions, NanCosineDoesNotQualify) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THAT(removable_attentions(std::vector{1.0, none, 1.0, 1.0}, {}), ElementsAre(2));
}

}  // namespace
}  // namespace knap::removable_attentions_test
