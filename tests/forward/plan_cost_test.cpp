#include "forward/plan_cost.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"

namespace knap::test::plan_cost_test {
namespace {

ModelCost cost_of(const LoadedModel& model) {
    return model_cost(model.config, *model.weights,
                      kv_row_bytes(model.config, {}, KvLayout::transposed_values));
}

PlanCost minus(const PlanCost& a, const PlanCost& b) {
    return {a.weight_bytes - b.weight_bytes, a.cache_bytes - b.cache_bytes};
}

ModulePlan with(ModulePlan plan, int layer, Module module, Level level) {
    plan.set(layer, module, level);
    return plan;
}

TEST(PlanCost, IsComputedFromTheShape) {
    // n_embd 32, 4 heads and 2 KV heads of 8, n_ff 64, n_vocab 24, Q8_0: 34 bytes per 32 values.
    const LoadedModel model(
        write_tiny(TinyGguf("llama", {.n_layers = 2}, GGML_TYPE_Q8_0), "cost.gguf"));
    const ModelCost cost = cost_of(model);
    ASSERT_EQ(cost.layers.size(), 2u);
    const std::int64_t attention_values = 2 * 32 * 32 + 2 * 32 * 16;
    const std::int64_t mlp_values = 3 * 32 * 64;
    const std::int64_t norm_bytes = 32 * 4;
    for (const LayerCost& layer : cost.layers) {
        EXPECT_EQ(layer.attention_bytes, attention_values / 32 * 34 + norm_bytes);
        EXPECT_EQ(layer.mlp_bytes, mlp_values / 32 * 34 + norm_bytes);
    }
    EXPECT_EQ(cost.head_bytes, 24 * 34 + norm_bytes);
    EXPECT_EQ(cost.embedding_row_bytes, 34);
    EXPECT_EQ(cost.rope_bytes, 0);
    EXPECT_EQ(cost.cache_row_bytes, 2 * 16 * 2);

    // Two rows after 100, with attention of layer 0 and the MLP of layer 1.
    ModulePlan plan(2);
    plan.set(0, Module::mlp, Level::skip);
    plan.set(1, Module::attention, Level::skip);
    const PlanCost expected{
        .weight_bytes =
            (attention_values + mlp_values) / 32 * 34 + 24 * 34 + 3 * norm_bytes + 2 * 34,
        .cache_bytes = 102 * 64,
    };
    EXPECT_EQ(plan_cost(cost, plan, 100, 2), expected);
    // Window 3 + 4: the same with 7 of the 100 rows.
    plan.set(0, Module::attention, Level::windowed(3, 4));
    const PlanCost windowed = plan_cost(cost, plan, 100, 2);
    EXPECT_EQ(windowed.weight_bytes, expected.weight_bytes);
    EXPECT_EQ(windowed.cache_bytes, 9 * 64);
}

TEST(PlanCost, FullPlanReadsWhatDecodingATokenReads) {
    for (const char* shape :
         {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "small-qwen3", "tiny-qwen3moe", "tiny-gpt-oss",
          "tiny-mistral3-moe", "tiny-granitemoe"}) {
        const LoadedModel model(tiny_model(shape, "Q8_0"));
        const ModulePlan full(model.config.n_layers);
        EXPECT_EQ(plan_cost(cost_of(model), full, 50, 1).weight_bytes,
                  model.weights->statistics().per_token_bytes)
            << shape;
    }
}

void expect_whole_model_counted(const TinyGguf& tiny) {
    const LoadedModel model(write_tiny(tiny, "cost-optional.gguf"));
    EXPECT_EQ(plan_cost(cost_of(model), ModulePlan(2), 0, 1).weight_bytes,
              model.weights->statistics().per_token_bytes);
}

TEST(PlanCost, CountsTiedHeadsBiasesAndRopeDivisors) {
    TinyGguf llama;
    llama.remove_tensor("output.weight");
    llama.tensors().push_back({"rope_freqs.weight", GGML_TYPE_F32, {4}});
    llama.tensors().push_back({"blk.0.attn_q.bias", GGML_TYPE_F32, {32}});
    llama.tensors().push_back({"blk.0.attn_output.bias", GGML_TYPE_F32, {32}});
    llama.tensors().push_back({"blk.1.ffn_gate.bias", GGML_TYPE_F32, {64}});
    expect_whole_model_counted(llama);
    TinyGguf qwen2("qwen2");
    qwen2.tensors().push_back({"output.bias", GGML_TYPE_F32, {24}});
    qwen2.tensors().push_back({"blk.1.attn_v.bias", GGML_TYPE_F32, {16}});
    expect_whole_model_counted(qwen2);
}

TEST(PlanCost, ReducedHeadReadsItsWholeCapacity) {
    const LoadedModel model(tiny_model("tiny-llama", "Q8_0"));
    const ModelCost cost = cost_of(model);
    ModulePlan plan(model.config.n_layers);
    const PlanCost whole = plan_cost(cost, plan, 50, 3);
    plan.set_head(HeadLevel::reduced);
    const PlanCost saved = minus(whole, plan_cost(cost, plan, 50, 3));
    const std::int64_t n_left_out =
        model.config.n_vocab - HeadSubset::capacity_for(model.config.n_vocab);
    EXPECT_EQ(saved.weight_bytes, n_left_out * model.config.n_embd / 32 * 34);
    EXPECT_EQ(saved.cache_bytes, 0);
    EXPECT_GT(n_left_out, 0);
}

TEST(PlanCost, RepackedWeightsCountAsStored) {
    const auto path = tiny_model("tiny-llama", "Q4_0");
    const LoadedModel plain(path);
    const LoadedModel repacked(path, Repack::automatic);
    const ModulePlan full(plain.config.n_layers);
    EXPECT_EQ(plan_cost(cost_of(repacked), full, 9, 1), plan_cost(cost_of(plain), full, 9, 1));
}

TEST(PlanCost, CacheBytesFollowFromTheCacheTypes) {
    const LoadedModel model(tiny_model("small-llama", "Q8_0"));
    const auto bytes = [&](const CacheTypes& types, KvLayout layout = KvLayout::rows) {
        const std::size_t n_bytes = kv_row_bytes(model.config, types, layout);
        return model_cost(model.config, *model.weights, n_bytes).cache_row_bytes;
    };
    const CacheType f16 = CacheType::f16;
    const CacheType q8_0 = CacheType::q8_0;
    EXPECT_EQ(bytes({f16, f16}), 2 * 128 * 2);
    EXPECT_EQ(bytes({CacheType::f32, f16}), 128 * 4 + 128 * 2);
    EXPECT_EQ(bytes({q8_0, f16}), 128 / 32 * 34 + 128 * 2);
    const int n_scales = model.config.n_kv_heads;
    EXPECT_EQ(bytes({q8_0, q8_0}, KvLayout::tiled_int8), 2 * (128 + 2 * n_scales));
}

class PlanCosts : public ::testing::Test {
  protected:
    LoadedModel model_{tiny_model("tiny-llama", "Q8_0")};
    ModelCost cost_ = cost_of(model_);
    int n_layers_ = model_.config.n_layers;
};

TEST_F(PlanCosts, ModuleCostsAddUpWhateverElseRuns) {
    std::mt19937 engine(5);
    for (int i = 0; i < 200; ++i) {
        ModulePlan plan(n_layers_);
        for (int layer = 0; layer < n_layers_; ++layer) {
            plan.set(
                layer, Module::attention,
                engine() % 2 ? Level::skip : Level::windowed(4, static_cast<int>(engine() % 99)));
            plan.set(layer, Module::mlp, engine() % 2 ? Level::skip : Level::full);
        }
        const int layer = static_cast<int>(engine() % static_cast<unsigned>(n_layers_));
        const int n_rows = 1 + static_cast<int>(engine() % 16);
        for (const Module module : {Module::attention, Module::mlp}) {
            const auto gain = [&](const ModulePlan& base) {
                return minus(plan_cost(cost_, with(base, layer, module, Level::full), 500, n_rows),
                             plan_cost(cost_, with(base, layer, module, Level::skip), 500, n_rows));
            };
            ASSERT_EQ(gain(plan), gain(ModulePlan(n_layers_)));
            ASSERT_GT(gain(plan).weight_bytes, 0);
        }
    }
}

TEST_F(PlanCosts, WindowCostDoesNotGrowWithTheContext) {
    const ModulePlan plan = uniform_window_plan(n_layers_, {16, 256});
    EXPECT_EQ(plan_cost(cost_, plan, 8000, 4), plan_cost(cost_, plan, 1000, 4));
    EXPECT_EQ(plan_cost(cost_, plan, 272, 4), plan_cost(cost_, plan, 1000, 4));
    EXPECT_EQ(plan_cost(cost_, plan, 100, 4), plan_cost(cost_, ModulePlan(n_layers_), 100, 4));
    EXPECT_LT(plan_cost(cost_, plan, 271, 4).cache_bytes,
              plan_cost(cost_, plan, 1000, 4).cache_bytes);
}

TEST_F(PlanCosts, OwnWindowsBoundWhatALayerReads) {
    const ModulePlan full(n_layers_);
    const PlanCost before = plan_cost(cost_, full, 1000, 4);
    cost_.layers[1].window = 24;
    const PlanCost after = plan_cost(cost_, full, 1000, 4);
    EXPECT_EQ(before.cache_bytes - after.cache_bytes, (1000 - 23) * cost_.cache_row_bytes);
    EXPECT_EQ(after.weight_bytes, before.weight_bytes);
    EXPECT_EQ(plan_cost(cost_, full, 20, 4),
              plan_cost(cost_, uniform_window_plan(n_layers_, {16, 256}), 20, 4));
    const LoadedModel gemma(tiny_model("tiny-gemma3", "Q8_0"));
    const ModelCost cost = model_cost(gemma.config, *gemma.weights, 100);
    EXPECT_EQ(cost.layers[0].window, 24);
    EXPECT_EQ(cost.layers[5].window, 0);
}

TEST_F(PlanCosts, SkippingAllLayersLeavesEmbeddingAndHead) {
    const PlanCost cost = plan_cost(cost_, early_exit_plan(n_layers_, 0), 1000, 3);
    EXPECT_EQ(cost.weight_bytes, cost_.head_bytes + 3 * cost_.embedding_row_bytes);
    EXPECT_EQ(cost.cache_bytes, 0);
}

TEST_F(PlanCosts, ManyRowsReadWeightsOnce) {
    const ModulePlan full(n_layers_);
    const PlanCost one = plan_cost(cost_, full, 0, 1);
    const PlanCost eight = plan_cost(cost_, full, 0, 8);
    EXPECT_EQ(eight.weight_bytes - one.weight_bytes, 7 * cost_.embedding_row_bytes);
    EXPECT_EQ(eight.cache_bytes, 8 * one.cache_bytes);
}

// 8 experts of 32 with three Q8_0 matrices of 32 x 64, of which rows use 3.
TEST(ExpertCosts, MoreRowsReadMoreExperts) {
    const LoadedModel model(tiny_model("tiny-qwen3moe", "Q8_0"));
    const ModelCost cost = cost_of(model);
    const ExpertCost& experts = cost.layers[1].experts;
    EXPECT_EQ(experts.bytes, 3 * 32 * 64 / 32 * 34);
    EXPECT_EQ(experts.n_experts, 8);
    EXPECT_EQ(experts.n_used, 3);
    EXPECT_DOUBLE_EQ(experts.n_read(0, 1), 3);
    EXPECT_DOUBLE_EQ(experts.n_read(0, 2), 8 * (1 - 0.625 * 0.625));
    EXPECT_DOUBLE_EQ(experts.n_read(1, 2), 8 * (1 - 0.875 * 0.875));
    EXPECT_NEAR(experts.n_read(0, 100), 8, 1e-9);
    EXPECT_DOUBLE_EQ(experts.n_read(5, 1), 3) << "no more than in the whole model";

    ModulePlan plan(model.config.n_layers);
    const PlanCost one = plan_cost(cost, plan, 0, 1);
    const PlanCost two = plan_cost(cost, plan, 0, 2);
    EXPECT_EQ(two.weight_bytes - one.weight_bytes - cost.embedding_row_bytes,
              plan.n_layers() *
                  std::llround((8 * (1 - 0.625 * 0.625) - 3) * static_cast<double>(experts.bytes)));
    plan.set(2, Module::mlp, Level::with_experts(1));
    EXPECT_EQ(one.weight_bytes - plan_cost(cost, plan, 0, 1).weight_bytes, 2 * experts.bytes);
    plan.set(2, Module::mlp, Level::skip);
    EXPECT_EQ(one.weight_bytes - plan_cost(cost, plan, 0, 1).weight_bytes,
              cost.layers[2].mlp_bytes + 3 * experts.bytes);
}

}  // namespace
}  // namespace knap::test::plan_cost_test
