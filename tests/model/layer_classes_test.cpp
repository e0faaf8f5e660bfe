#include "model/layer_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::layer_classes_test {
namespace {

TEST(LayerClasses, LayersOfOneTypeAreAlike) {
    const LoadedModel model(tiny_model("tiny-llama", "Q8_0"));
    EXPECT_THAT(classify_layers(*model.weights), ::testing::Each(0));
    EXPECT_EQ(static_cast<int>(classify_layers(*model.weights).size()), model.config.n_layers);
}

// A mixture gives the sensitive matrices of some layers more bits.
TEST(LayerClasses, AMixtureHasTwoClassesInOrderOfAppearance) {
    const LoadedModel model(tiny_model("small-llama", "Q4_K_M"));
    const std::vector<int> classes = classify_layers(*model.weights);
    EXPECT_EQ(classes.front(), 0);
    EXPECT_THAT(classes, ::testing::Contains(1));
    EXPECT_THAT(classes, ::testing::Each(::testing::AnyOf(0, 1)));
}

}  // namespace
}  // namespace knap::test::layer_classes_test
