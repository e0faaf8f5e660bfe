// Which phases a pass on an NVIDIA GPU has.
#include "cuda/phase_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::test::cuda_phase_list_test {
namespace {

using Op = CudaPhase::Op;
using testing::ElementsAre;

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
    static std::vector<Op> ops(const std::vector<CudaPhase>& phases) {
        std::vector<Op> ops;
        for (const CudaPhase& phase : phases) {
            ops.push_back(phase.op);
        }
        return ops;
    }

    ModelConfig config_;
    CudaWeights weights_;
    ModulePlan plan_{2};
    AttentionGroups groups_;

  private:
    float numbers_[32] = {};
    std::uint8_t bytes_[1] = {};
};

TEST_F(PhaseListTest, WhoeverWritesTheStreamPreparesItForTheNextProduct) {
    const auto phases = list();
    EXPECT_THAT(ops(phases),
                ElementsAre(Op::embed, Op::heads, Op::attend, Op::add, Op::gate, Op::add, Op::heads,
                            Op::attend, Op::add, Op::gate, Op::add, Op::head));
    EXPECT_EQ(phases[0].norm, norm(10));
    EXPECT_EQ(phases[3].norm, norm(20));
    EXPECT_EQ(phases[5].norm, norm(11));
    EXPECT_EQ(phases[10].norm, norm(0));
    EXPECT_FALSE(phases[5].gives_halves);
    EXPECT_TRUE(phases[10].gives_halves) << "the head takes floats";
    for (const CudaPhase& phase : phases) {
        const bool reads_stream =
            phase.op == Op::heads || phase.op == Op::gate || phase.op == Op::head;
        EXPECT_EQ(phase.is_normed, reads_stream);
        EXPECT_EQ(phase.takes_factor, reads_stream && phase.op != Op::head) << "floats have it";
        EXPECT_EQ(phase.gives_inputs, phase.op == Op::embed || phase.op == Op::add);
    }
}

TEST_F(PhaseListTest, TheLastStreamIsPreparedForNobody) {
    const std::vector<int> captures{4};
    const auto phases = list({.captures = captures});
    EXPECT_THAT(ops(phases),
                ElementsAre(Op::embed, Op::heads, Op::attend, Op::add, Op::gate, Op::add, Op::heads,
                            Op::attend, Op::add, Op::gate, Op::add, Op::capture));
    EXPECT_FALSE(phases[10].gives_inputs);
    EXPECT_EQ(phases[10].norm, nullptr);
    EXPECT_TRUE(phases[8].gives_inputs);
}

TEST_F(PhaseListTest, NormsBehindModulesTakeAPhase) {
    for (std::size_t i = 0; i < 2; ++i) {
        weights_.layers[i].attn_post_norm = norm(5 + i);
        weights_.layers[i].ffn_post_norm = norm(7 + i);
    }
    const auto phases = list();
    EXPECT_THAT(ops(phases),
                ElementsAre(Op::embed, Op::heads, Op::attend, Op::result, Op::norm_result, Op::gate,
                            Op::result, Op::norm_result, Op::heads, Op::attend, Op::result,
                            Op::norm_result, Op::gate, Op::result, Op::norm_result, Op::head));
    EXPECT_EQ(phases[4].layer, 0);
    EXPECT_EQ(phases[4].group, 0) << "attention's";
    EXPECT_EQ(phases[7].group, 1) << "the MLP's";
    EXPECT_EQ(phases[11].layer, 1);
    // What follows is prepared once the result has been added.
    EXPECT_EQ(phases[4].norm, norm(20));
    EXPECT_TRUE(phases[4].gives_inputs);
    EXPECT_FALSE(phases[3].gives_inputs);
}

TEST_F(PhaseListTest, ProductsWithoutANormBeforeThemReadTheStream) {
    for (CudaWeights::Layer& layer : weights_.layers) {
        layer.attn_norm = nullptr;
        layer.ffn_norm = nullptr;
    }
    const auto phases = list();
    EXPECT_TRUE(phases[0].gives_inputs);
    EXPECT_EQ(phases[0].norm, nullptr);
    EXPECT_FALSE(phases[1].is_normed);
    EXPECT_FALSE(phases[4].is_normed);
    EXPECT_TRUE(phases[11].is_normed) << "the head has a norm";
}

TEST_F(PhaseListTest, NormsOfWholeRowsTakeAPhaseBeforeHeadsAreRead) {
    config_.head_norm = HeadNorm::whole_row;
    const std::vector<int> captures{2};
    // Keys and values of the second layer are stored, but nobody reads its attention.
    EXPECT_THAT(ops(list({.captures = captures})),
                ElementsAre(Op::embed, Op::heads, Op::norm_heads, Op::attend, Op::add, Op::gate,
                            Op::add, Op::capture, Op::heads, Op::norm_heads, Op::store));
}

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
