// Which phases a pass on an NVIDIA GPU has.
#include "cuda/phase_list.h"

#include <gtest/gtest.h>

namespace knap::test::cuda_phase_list_test {
namespace {

using Op = CudaPhase::Op;

// Two layers whose matrices and norms are addresses of nothing.
class PhaseListTest : public ::testing::Test {
  protected:
    PhaseListTest() {
        config_.n_layers = 2;
        config_.layers.resize(2);
        weights_.embedding = matrix(GGML_TYPE_Q8_0);
        weights_.head = matrix(GGML_TYPE_F16);
        weights_.output_norm = norm(0);
        for (int i = 0; i < 2; ++i) {
            weights_.layers.push_back({.attn_norm = norm(10 + i),
                                       .ffn_norm = norm(20 + i),
                                       .q = matrix(GGML_TYPE_Q4_K),
                                       .k = matrix(GGML_TYPE_Q4_K),
                                       .v = matrix(GGML_TYPE_Q4_K),
                                       .o = matrix(GGML_TYPE_Q4_K),
                                       .gate = matrix(GGML_TYPE_Q4_K),
                                       .up = matrix(GGML_TYPE_Q4_K),
                                       .down = matrix(GGML_TYPE_Q4_K)});
        }
    }

    const float* norm(std::size_t number) const { return numbers_ + number; }
    CudaMatrix matrix(ggml_type type) const {
        return {.strips = bytes_, .n_strips = 1, .n_units = 1, .type = static_cast<short>(type)};
    }

    std::vector<CudaPhase> list(PhaseRequest request = {.has_logits = true}) {
        if (request.plan == nullptr) {
            request.plan = &plan_;
        }
        request.exit_layer = request.exit_layer > 0 ? request.exit_layer : config_.n_layers;
        groups_.assign(*request.plan, request.entry_layer, request.exit_layer, config_.layers);
        request.groups = &groups_;
        std::vector<CudaPhase> phases;
        list_phases(config_, weights_, request, phases);
        return phases;
    }

    ModelConfig config_;
    CudaWeights weights_;
    ModulePlan plan_{2};
    AttentionGroups groups_;

  private:
    float numbers_[32] = {};
    std::uint8_t bytes_[1] = {};
};

TEST_F(PhaseListTest, LayersWithAWindowHaveAGroupOfTheirOwn) {
    config_.layers[1].window = 24;
    const auto phases = list();
    EXPECT_EQ(phases[2].op, Op::attend);
    EXPECT_EQ(phases[2].group, 0);
    EXPECT_EQ(phases[7].op, Op::attend);
    EXPECT_EQ(phases[7].group, 1);
    EXPECT_EQ(groups_.groups()[1].scope(), (AttentionScope{{}, 24}));
}

}  // namespace
}  // namespace knap::test::cuda_phase_list_test
