#include "support/tiny_adapter.h"

#include <cmath>
#include <random>

namespace knap::test {
namespace {

std::vector<float> random_values(std::size_t n, float mean, float deviation, std::mt19937& engine) {
    std::normal_distribution<float> normal(mean, deviation);
    std::vector<float> values(n);
    for (float& value : values) {
        value = normal(engine);
    }
    return values;
}

}  // namespace

TinyGguf tiny_adapter(const TinyAdapterShape& shape) {
    TinyGguf file = TinyGguf::empty("kangaroo");
    const auto set_count = [&](std::string_view field, int value) {
        gguf_set_val_u32(file.metadata(), file.key(field).c_str(),
                         static_cast<std::uint32_t>(value));
    };
    const auto set_number = [&](std::string_view field, float value) {
        gguf_set_val_f32(file.metadata(), file.key(field).c_str(), value);
    };
    set_count("exit_layer", shape.exit_layer);
    set_count("block_count", 1);
    set_count("context_length", 1024);
    set_count("embedding_length", shape.n_embd);
    set_count("attention.head_count", shape.n_heads);
    set_count("attention.head_count_kv", shape.n_heads);
    set_count("rope.dimension_count", shape.n_embd / shape.n_heads);
    set_number("attention.layer_norm_rms_epsilon", 1e-5f);
    set_number("rope.freq_base", 10000.0f);

    std::mt19937 engine(1);
    const auto n_embd = static_cast<std::size_t>(shape.n_embd);
    const float deviation = shape.gain / std::sqrt(static_cast<float>(shape.n_embd));
    for (const char* name : {"blk.0.attn_norm.weight", "output_norm.weight"}) {
        file.tensors().push_back(
            {name, GGML_TYPE_F32, {shape.n_embd}, random_values(n_embd, 1.0f, 0.2f, engine)});
    }
    for (const char* name : {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight",
                             "blk.0.attn_output.weight"}) {
        file.tensors().push_back({name,
                                  shape.type,
                                  {shape.n_embd, shape.n_embd},
                                  random_values(n_embd * n_embd, 0.0f, deviation, engine)});
    }
    return file;
}

}  // namespace knap::test
