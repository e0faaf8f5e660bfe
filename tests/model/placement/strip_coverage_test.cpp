#include "model/placement/strip_coverage.h"

#include <algorithm>
#include <deque>

#include <gtest/gtest.h>

#include "base/text.h"
#include "device/backend.h"
#include "device/layer_map.h"
#include "model/architectures/architecture.h"
#include "model/gguf/gguf_file.h"
#include "support/tiny_model.h"

namespace knap::test::strip_coverage_test {
namespace {

StripDevices gpu(int capability, std::size_t shared_bytes = 227 * 1024) {
    return {.names = {"CUDA0"},
            .first = {.index = 0, .capability = capability, .shared_bytes = shared_bytes},
            .has_kernels = true};
}
const StripDevices kGpu = gpu(90);

// A model whose tensors can be changed.
struct Model {
    explicit Model(const char* shape = "small-llama", const char* type = "Q8_0")
        : file(GgufFile::open(tiny_model(shape, type))), config(read_config(file)) {
        bindings =
            bind_tensors(file, config, find_architecture(config.architecture)->tensors, tensors);
        for (TensorBinding& binding : bindings) {
            binding.info = &infos.emplace_back(*binding.info);
        }
    }

    TensorInfo& tensor(std::string_view name) {
        return *std::ranges::find(infos, name, &TensorInfo::name);
    }
    Model& with_type(std::string_view name, ggml_type type) {
        tensor(name).type = type;
        return *this;
    }
    // Every tensor whose name ends so.
    Model& with_types(std::string_view end, ggml_type type) {
        for (TensorInfo& info : infos) {
            info.type = info.name.ends_with(end) ? type : info.type;
        }
        return *this;
    }
    Model& with_matrices(ggml_type type) {
        for (const TensorBinding& binding : bindings) {
            tensor(binding.info->name).type = binding.is_matrix ? type : GGML_TYPE_F32;
        }
        return *this;
    }

    GgufFile file;
    ModelConfig config;
    ModelTensors tensors;
    std::vector<TensorBinding> bindings;
    std::deque<TensorInfo> infos;
};

std::string reason(const Model& model,
                   const StripDevices& devices = kGpu,
                   const WeightOptions& options = {.kernels = Kernels::own}) {
    return why_not_strips(model.config, model.bindings, model.tensors, devices, options)
        .value_or("used");
}

TEST(StripCoverage, TakesEveryTypeWithAKernel) {
    for (const ggml_type type : {GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1,
                                 GGML_TYPE_Q8_0, GGML_TYPE_MXFP4, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K,
                                 GGML_TYPE_Q6_K, GGML_TYPE_F16, GGML_TYPE_BF16}) {
        EXPECT_EQ(reason(Model().with_matrices(type)), "used") << ggml_type_name(type);
    }
    EXPECT_EQ(reason(Model("small-qwen3")), "used");
    EXPECT_EQ(reason(Model().with_matrices(GGML_TYPE_F32)),
              "tensor token_embd.weight: type F32 has no kernel");
}

TEST(StripCoverage, NeedsOneNvidiaGpu) {
    const Model model;
    const auto on = [&](StripDevices devices) { return reason(model, devices); };
    EXPECT_EQ(on({.names = {"CPU"}, .has_kernels = true}), "no NVIDIA GPU");
    EXPECT_EQ(on({.names = {"CPU"}}), "no NVIDIA GPU");
    EXPECT_EQ(on({.names = {"RPC0[10.0.0.1:50052]"}, .has_kernels = true}), "no NVIDIA GPU");
    EXPECT_EQ(on({.names = {"CPU", "CUDA0"}, .has_kernels = true}), "layers on several devices");
    EXPECT_EQ(on({.names = {"CUDA0", "CUDA1"},
                  .first = {.index = 0, .capability = 90},
                  .has_kernels = true}),
              "layers on several devices");
    EXPECT_EQ(on({.names = {"CUDA0"}, .has_kernels = true}), "the CUDA runtime finds no GPU");
    EXPECT_EQ(on({.names = {"CUDA0"}}), "a build without them");
}

TEST(StripCoverage, NeedsComputeCapability8AndSharedMemory) {
    const Model model;  // small enough for all
    EXPECT_EQ(reason(model, gpu(75)), "compute capability 7.5");
    EXPECT_EQ(reason(model, gpu(80)), "used");
    EXPECT_EQ(reason(model, gpu(100)), "used");
    EXPECT_EQ(reason(model, gpu(80, 163 * 1024)), "used");
    EXPECT_EQ(reason(model, gpu(120, 99 * 1024)), "used");
    Model wide;
    wide.config.head_dim = 128;
    wide.config.rope.n_rot = 128;
    EXPECT_EQ(reason(wide, gpu(120, 99 * 1024)),
              "heads of 128 channels and these types in 99 KiB of shared memory");
}

TEST(StripCoverage, YieldsToOptions) {
    const Model model;
    const auto with = [&](const WeightOptions& options) { return reason(model, kGpu, options); };
    EXPECT_EQ(with({}), "used");
    EXPECT_EQ(with({.repack = Repack::off}), "used");
    EXPECT_EQ(with({.flash_attention = FlashAttention::off}), "used");
    EXPECT_EQ(with({.kernels = Kernels::ggml}), "ggml's kernels were asked for");
    EXPECT_EQ(with({.flash_attention = FlashAttention::on}),
              "ggml's flash attention was asked for");
    EXPECT_EQ(with({.has_adapter = true}), "an adapter is loaded");
    EXPECT_EQ(with({.cache_type_k = CacheType::q8_0, .cache_type_v = CacheType::q8_0}), "used");
    EXPECT_EQ(with({.cache_type_k = CacheType::q8_0}), "used");
    EXPECT_EQ(with({.cache_type_v = CacheType::f32}), "cache type f32");
}

TEST(StripCoverage, TakesSixteenBitLayersWithoutBeingAsked) {
    for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16}) {
        EXPECT_EQ(reason(Model().with_matrices(type), kGpu, {}), "used") << ggml_type_name(type);
    }
}

TEST(StripCoverage, NeedsAHeadSizeWithAKernel) {
    Model model;
    for (const int head_dim : {64, 96, 128, 256}) {
        model.config.head_dim = head_dim;
        model.config.rope.n_rot = head_dim;
        EXPECT_EQ(reason(model), "used");
    }
    for (const int head_dim : {16, 32, 80, 112, 512}) {
        model.config.head_dim = head_dim;
        EXPECT_EQ(reason(model), concat("head size ", head_dim));
    }
}

TEST(StripCoverage, LeavesOtherLayersToGgml) {
    const auto reason_of = [](const char* shape) {
        Model model(shape);
        model.config.head_dim = 64;  // those of tiny shapes have no kernel
        return reason(model);
    };
    EXPECT_EQ(reason_of("small-phi"), "heads of 64 channels of which 48 rotate");
    EXPECT_EQ(reason_of("small-smollm3"), "layers that rotate differently");
    EXPECT_EQ(reason_of("small-gemma3"), "layers that rotate differently");
    EXPECT_EQ(reason_of("small-gemma2"), "layers that rotate differently");
    EXPECT_EQ(reason_of("small-hunyuan-dense"), "norms of whole rows or after the rotation");
    EXPECT_EQ(reason_of("small-mistral3"), "attention that sharpens with the position");
    EXPECT_EQ(reason_of("small-granite"), "scaled embeddings, residuals or logits");
    EXPECT_EQ(reason_of("small-exaone4"),
              "tensor blk.0.post_attention_norm.weight: a norm after its module");
    EXPECT_EQ(reason(Model("small-qwen3vl")), "rotation in sections");
    EXPECT_EQ(reason(Model("small-qwen3moe")), "layers with experts");
    EXPECT_EQ(reason(Model("small-mixtral")), "layers with experts");
    EXPECT_EQ(reason(Model("small-gpt-oss")), "layers with experts");
    EXPECT_EQ(reason_of("small-ernie4.5"), "used");
    EXPECT_EQ(reason_of("small-seed-oss"), "used");
    const auto with = [](auto change) {
        Model model;
        change(model.config);
        return reason(model);
    };
    EXPECT_EQ(with([](ModelConfig& config) { config.layers[1].window = 24; }),
              "layers that attend to a window");
    EXPECT_EQ(with([](ModelConfig& config) { config.soft_cap = 5; }), "soft caps");
    EXPECT_EQ(with([](ModelConfig& config) { config.final_soft_cap = 5; }), "soft caps");
    EXPECT_EQ(with([](ModelConfig& config) { config.activation = Activation::gelu; }),
              "another activation than silu");
}

TEST(StripCoverage, EveryTensorCounts) {
    EXPECT_EQ(reason(Model().with_type("blk.2.ffn_down.weight", GGML_TYPE_IQ2_XS)),
              "tensor blk.2.ffn_down.weight: type IQ2_XS has no kernel");
    EXPECT_EQ(reason(Model().with_type("output.weight", GGML_TYPE_F32)),
              "tensor output.weight: type F32 has no kernel");
    EXPECT_EQ(reason(Model().with_type("output_norm.weight", GGML_TYPE_F16)),
              "tensor output_norm.weight: type F16 has no kernel");
    Model model;
    model.tensor("output.weight").ne[1] = 289;  // no whole number of strips
    EXPECT_EQ(reason(model), "tensor output.weight: a size of {256, 289} has no kernel");
    model.tensor("output.weight").ne[1] = 288;
    model.tensor("token_embd.weight").ne[0] = 32;  // no whole number of units
    EXPECT_EQ(reason(model), "tensor token_embd.weight: a size of {32, 288} has no kernel");
    // 64 inputs are enough for Q8_0 but not for K-quants.
    model.tensor("token_embd.weight").ne[0] = 64;
    EXPECT_EQ(reason(model), "used");
    model.tensor("token_embd.weight").type = GGML_TYPE_Q4_K;
    EXPECT_EQ(reason(model), "tensor token_embd.weight: a size of {64, 288} has no kernel");
}

TEST(StripCoverage, MatricesOfTheSameRowsTakeThemInOneForm) {
    EXPECT_EQ(reason(Model()
                         .with_types("attn_q.weight", GGML_TYPE_Q4_K)
                         .with_types("attn_v.weight", GGML_TYPE_Q6_K)
                         .with_types("ffn_down.weight", GGML_TYPE_Q4_0)),
              "used");
    EXPECT_EQ(reason(Model().with_type("blk.3.attn_v.weight", GGML_TYPE_F16)),
              "tensors blk.3.attn_q.weight and blk.3.attn_v.weight: types Q8_0 and F16 for the "
              "same rows");
    EXPECT_EQ(reason(Model().with_types("ffn_gate.weight", GGML_TYPE_BF16)),
              "tensors blk.0.ffn_gate.weight and blk.0.ffn_up.weight: types BF16 and Q8_0 for the "
              "same rows");
    // Gate and up are multiplied together.
    EXPECT_EQ(reason(Model().with_types("ffn_up.weight", GGML_TYPE_Q4_0)),
              "tensors blk.0.ffn_gate.weight and blk.0.ffn_up.weight: types Q8_0 and Q4_0 for the "
              "same rows");
    EXPECT_EQ(reason(Model()
                         .with_types("ffn_gate.weight", GGML_TYPE_BF16)
                         .with_types("ffn_up.weight", GGML_TYPE_BF16)
                         .with_types("ffn_down.weight", GGML_TYPE_Q4_0)
                         .with_types("attn_output.weight", GGML_TYPE_F16)
                         .with_types("output.weight", GGML_TYPE_F16)),
              "used");
}

TEST(StripCoverage, ThisMachinesCpuHasNone) {
    Backend backend(1);
    const StripDevices devices = strip_devices(LayerMap(backend, 4));
    EXPECT_EQ(devices.names, std::vector<std::string>{"CPU"});
    EXPECT_EQ(devices.first.index, -1);
    EXPECT_EQ(devices.has_kernels, has_cuda_kernels());
    EXPECT_EQ(reason(Model(), devices), "no NVIDIA GPU");
}

}  // namespace
}  // namespace knap::test::strip_coverage_test
