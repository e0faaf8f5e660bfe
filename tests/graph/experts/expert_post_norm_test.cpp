// A norm behind experts, and a bias of the expert that every row uses. No architecture has either
// yet, and libllama none to compare with, so layers of another model get them here.
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/matmul/matmul.h"
#include "model/weights.h"
#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/reference_forward.h"
#include "support/tiny_model.h"

namespace knap::test::expert_post_norm_test {
namespace {

constexpr int kTokens = 40;
constexpr float kBound = 0.05f;        // of logits, which are spread about 1
constexpr float kLeastMargin = 0.01f;  // of routers, so that rounding chooses no other expert

// Experts beside a shared one, and scaled residuals.
LoadedModel load(Kernels kernels) {
    return LoadedModel(tiny_model("tiny-granitemoe", "F32"),
                       kernels == Kernels::ggml ? Repack::off : Repack::automatic,
                       /*n_threads=*/2, kernels);
}

void add_to_layers(LoadedModel& model) {
    for (LayerWeights& layer : const_cast<ModelTensors&>(model.weights->tensors()).layers) {
        layer.ffn_post_norm = layer.ffn_norm;  // any norm will do
        layer.ffn_down_b = layer.ffn_norm;     // and any vector of this length
    }
}

class ExpertPostNorm : public ::testing::Test {
  protected:
    ExpertPostNorm() : model_(load(Kernels::ggml)) {
        add_to_layers(model_);
        tokens_ = decided_tokens(model_, kTokens, 3, kLeastMargin);
        expected_ = ReferenceForward(model_, 256).feed(tokens_);
    }

    void expect_close(LoadedModel& model, bool uses_graphs) {
        ForwardRig rig(model, {.path = AttentionPath::kernel, .uses_graphs = uses_graphs});
        const auto rows = rig.feed(tokens_);
        ASSERT_EQ(rows.size(), expected_.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            EXPECT_LT(max_abs_difference(rows[i], expected_[i]), kBound) << "row " << i;
        }
    }

    LoadedModel model_;
    std::vector<Token> tokens_;
    std::vector<std::vector<float>> expected_;
};

TEST_F(ExpertPostNorm, ChangesLogits) {
    LoadedModel without = load(Kernels::ggml);
    const auto rows = ReferenceForward(without, 256).feed(tokens_);
    EXPECT_GT(max_abs_difference(rows.back(), expected_.back()), 4 * kBound);
}

TEST_F(ExpertPostNorm, IsAppliedWithGgml) {
    expect_close(model_, true);
}

TEST_F(ExpertPostNorm, IsAppliedByOurOperatorsAndAsNodes) {
    if (!has_fast_matmul()) {
        GTEST_SKIP() << "no kernels of ours on this machine";
    }
    for (const bool uses_graphs : {false, true}) {
        SCOPED_TRACE(uses_graphs ? "as nodes" : "without graphs");
        LoadedModel packed = load(Kernels::automatic);
        add_to_layers(packed);
        expect_close(packed, uses_graphs);
    }
}

}  // namespace
}  // namespace knap::test::expert_post_norm_test
