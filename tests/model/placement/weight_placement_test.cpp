#include "model/placement/weight_placement.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "device/backend.h"
#include "device/layer_map.h"
#include "kernels/cuda/strips.h"
#include "model/architectures/architecture.h"
#include "model/gguf/gguf_file.h"
#include "model/row_invariance.h"
#include "support/tiny_model.h"

namespace knap::test::weight_placement_test {
namespace {

// The placements of a model on the CPU.
struct Planned {
    explicit Planned(const char* shape, bool has_strips)
        : file(GgufFile::open(tiny_model(shape, "Q8_0"))), config(read_config(file)) {
        const auto bindings =
            bind_tensors(file, config, find_architecture(config.architecture)->tensors, tensors);
        for (const TensorBinding& binding : bindings) {
            n_matrices += binding.is_matrix ? 1 : 0;
        }
        tensors.has_strips = has_strips;
        placements = plan_placements(bindings, tensors, LayerMap(backend, config.n_layers), {});
    }

    int count(Placement::Kind kind) const {
        return static_cast<int>(std::ranges::count(placements, kind, &Placement::kind));
    }
    const Placement* of(ggml_tensor* const& place) const {
        const auto found = std::ranges::find(placements, &place, &Placement::place);
        return found != placements.end() ? &*found : nullptr;
    }

    Backend backend{1};
    GgufFile file;
    ModelConfig config;
    ModelTensors tensors;
    int n_matrices = 0;
    std::vector<Placement> placements;
};

TEST(WeightPlacement, AllMatricesGoIntoStripsOrNone) {
    const Planned strips("small-llama", true);
    EXPECT_EQ(strips.count(Placement::Kind::strips), strips.n_matrices);
    EXPECT_EQ(strips.count(Placement::Kind::packed), 0);
    EXPECT_EQ(strips.of(strips.tensors.token_embd)->kind, Placement::Kind::strips);
    EXPECT_EQ(strips.of(strips.tensors.output)->kind, Placement::Kind::strips);
    EXPECT_EQ(strips.of(strips.tensors.output_norm)->kind, Placement::Kind::mapped);
    EXPECT_EQ(strips.of(strips.tensors.layers[0].wq)->copy_to, strips.backend.buffer_type());
    const Planned usual("small-llama", false);
    EXPECT_EQ(usual.count(Placement::Kind::strips), 0);
}

TEST(WeightPlacement, ATiedHeadInStripsIsTheEmbedding) {
    const Planned strips("smollm2-135m", true);
    EXPECT_EQ(strips.of(strips.tensors.token_embd)->kind, Placement::Kind::strips);
    EXPECT_EQ(strips.of(strips.tensors.output), nullptr);
    EXPECT_EQ(strips.count(Placement::Kind::strips), strips.n_matrices);
}

TEST(WeightPlacement, StripsAreWhole) {
    EXPECT_EQ(rows_in_strips(288), 288);
    EXPECT_EQ(rows_in_strips(289), 304);
    EXPECT_EQ(rows_in_strips(1), 16);
}

TEST(WeightPlacement, TheModelKnowsOfStrips) {
    ggml_tensor matrix{};
    ModelTensors tensors;
    tensors.has_strips = true;
    EXPECT_EQ(layout_of(&matrix, tensors), WeightLayout::strips);
    EXPECT_EQ(to_string(WeightLayout::strips), "strips");
}

}  // namespace
}  // namespace knap::test::weight_placement_test
