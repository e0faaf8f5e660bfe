#include "tools/make_model/random_model.h"

#include <algorithm>
#include <vector>

#include "ggml-cpp.h"
#include "gguf.h"

#include "base/error.h"
#include "base/partial_file.h"
#include "base/text.h"
#include "model/parallel_jobs.h"
#include "tools/make_model/random_tensors.h"
#include "tools/make_model/random_weights.h"
#include "tools/make_model/shapes.h"
#include "tools/make_model/synthetic_vocab.h"
#include "tools/make_model/weight_recipe.h"

namespace knap {

namespace {

constexpr int kMaxLayers = 512;  // libllama's limit
constexpr std::size_t kChunkBytes = 1 << 20;

ModelShape requested_shape(const RandomModelOptions& options) {
    ModelShape shape = find_shape(options.shape);
    if (options.n_layers < 0 || options.n_layers > kMaxLayers) {
        fail("--layers: expected 1 to ", kMaxLayers, " (0: as in the shape), found ",
             options.n_layers);
    }
    if (options.n_layers > 0) {
        shape.n_layers = options.n_layers;
    }
    return shape;
}

// What the options describe, checked.
struct ModelContents {
    ModelShape shape;
    WeightRecipe recipe;
    std::vector<RandomTensor> tensors;
};

ModelContents resolve(const RandomModelOptions& options) {
    const ModelShape shape = requested_shape(options);
    const WeightRecipe recipe =
        parse_weight_recipe(options.type, options.head_type, shape.has_tied_head);
    return {shape, recipe, declare_random_tensors(shape, recipe)};
}

// Metadata under "<architecture>.".
class ArchitectureKeys {
  public:
    ArchitectureKeys(gguf_context* gguf, std::string_view architecture)
        : gguf_(gguf), prefix_(concat(architecture, ".")) {}

    void set(const char* key, int value) {
        gguf_set_val_u32(gguf_, (prefix_ + key).c_str(), std::uint32_t(value));
    }
    void set(const char* key, const char* value) {
        gguf_set_val_str(gguf_, (prefix_ + key).c_str(), value);
    }
    void set(const char* key, const std::array<std::int32_t, 4>& values) {
        gguf_set_arr_data(gguf_, (prefix_ + key).c_str(), GGUF_TYPE_INT32, values.data(),
                          values.size());
    }
    void set(const char* key, float value) {
        gguf_set_val_f32(gguf_, (prefix_ + key).c_str(), value);
    }

  private:
    gguf_context* gguf_;
    std::string prefix_;
};

void set_general(gguf_context* gguf, const ModelShape& shape, const WeightRecipe& recipe) {
    gguf_set_val_str(gguf, "general.architecture", std::string(shape.architecture).c_str());
    gguf_set_val_str(gguf, "general.type", "model");
    gguf_set_val_str(gguf, "general.name", concat(shape.name, " (random weights)").c_str());
    gguf_set_val_u32(gguf, "general.file_type", recipe.file_type);
    gguf_set_val_u32(gguf, "general.quantization_version", GGML_QNT_VERSION);
}

void set_hyperparameters(gguf_context* gguf, const ModelShape& shape) {
    ArchitectureKeys keys(gguf, shape.architecture);
    keys.set("block_count", shape.n_layers);
    keys.set("context_length", shape.n_ctx_train);
    keys.set("embedding_length", shape.n_embd);
    keys.set("feed_forward_length", shape.n_ff);
    keys.set("attention.head_count", shape.n_heads);
    keys.set("attention.head_count_kv", shape.n_kv_heads);
    keys.set("attention.layer_norm_rms_epsilon", shape.rms_eps);
    keys.set("rope.freq_base", shape.rope_freq_base);
    keys.set("rope.dimension_count", shape.n_rot > 0 ? shape.n_rot : shape.head_dim);
    keys.set("vocab_size", shape.n_vocab);
    if (shape.architecture == "qwen3" || shape.n_embd_q() != shape.n_embd) {
        keys.set("attention.key_length", shape.head_dim);
        keys.set("attention.value_length", shape.head_dim);
    }
    if (const ExpertShape& experts = shape.experts; experts.n_experts > 0) {
        keys.set("expert_count", experts.n_experts);
        keys.set("expert_used_count", experts.n_used);
        if (experts.n_ff > 0) {
            keys.set("expert_feed_forward_length", experts.n_ff);
        }
        if (experts.n_ff_shared > 0) {
            keys.set("expert_shared_feed_forward_length", experts.n_ff_shared);
        }
    }
    for (const ShapeField& field : shape.fields) {
        std::visit([&](const auto& value) { keys.set(field.name, value); }, field.value);
    }
}

void set_strings(gguf_context* gguf, const char* key, const std::vector<std::string>& strings) {
    std::vector<const char*> pointers;
    pointers.reserve(strings.size());
    for (const std::string& string : strings) {
        pointers.push_back(string.c_str());
    }
    gguf_set_arr_str(gguf, key, pointers.data(), pointers.size());
}

void set_vocabulary(gguf_context* gguf, const SyntheticVocab& vocab) {
    gguf_set_val_str(gguf, "tokenizer.ggml.model", "gpt2");
    gguf_set_val_str(gguf, "tokenizer.ggml.pre", "qwen2");
    set_strings(gguf, "tokenizer.ggml.tokens", vocab.tokens);
    gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, vocab.types.data(),
                      vocab.types.size());
    set_strings(gguf, "tokenizer.ggml.merges", vocab.merges);
    gguf_set_val_u32(gguf, "tokenizer.ggml.bos_token_id", vocab.end_of_text_id);
    gguf_set_val_u32(gguf, "tokenizer.ggml.eos_token_id", vocab.end_of_turn_id);
    gguf_set_val_u32(gguf, "tokenizer.ggml.padding_token_id", vocab.end_of_text_id);
    gguf_set_val_bool(gguf, "tokenizer.ggml.add_bos_token", false);
    gguf_set_val_str(gguf, "tokenizer.chat_template", std::string(vocab.chat_template).c_str());
}

void add_tensors(gguf_context* gguf, const std::vector<RandomTensor>& tensors) {
    const ggml_context_ptr names(ggml_init({.mem_size = tensors.size() * ggml_tensor_overhead(),
                                            .mem_buffer = nullptr,
                                            .no_alloc = true}));
    for (const RandomTensor& tensor : tensors) {
        const std::int64_t sizes[] = {tensor.n_in, tensor.n_rows / tensor.n_planes,
                                      tensor.n_planes};
        const int n_dims = tensor.n_planes > 1 ? 3 : tensor.is_matrix() ? 2 : 1;
        ggml_tensor* declared = ggml_new_tensor(names.get(), tensor.type, n_dims, sizes);
        ggml_set_name(declared, tensor.name.c_str());
        gguf_add_tensor(gguf, declared);
    }
}

// A piece of a tensor's data that one thread generates and writes.
struct Chunk {
    const RandomTensor* tensor;
    std::int64_t first_row;
    std::size_t n_bytes;  // whole rows
    std::uint64_t file_offset;
};

std::vector<Chunk> cut_chunks(const gguf_context* gguf, const std::vector<RandomTensor>& tensors) {
    std::vector<Chunk> chunks;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const RandomTensor& tensor = tensors[i];
        const std::size_t row_bytes = ggml_row_size(tensor.type, tensor.n_in);
        const auto rows_per_chunk = std::int64_t(std::max<std::size_t>(1, kChunkBytes / row_bytes));
        const std::uint64_t begin =
            gguf_get_meta_size(gguf) + gguf_get_tensor_offset(gguf, std::int64_t(i));
        for (std::int64_t row = 0; row < tensor.n_rows; row += rows_per_chunk) {
            const std::int64_t n_rows = std::min(rows_per_chunk, tensor.n_rows - row);
            chunks.push_back({.tensor = &tensor,
                              .first_row = row,
                              .n_bytes = std::size_t(n_rows) * row_bytes,
                              .file_offset = begin + std::uint64_t(row) * row_bytes});
        }
    }
    return chunks;
}

std::uint64_t file_size(const gguf_context* gguf, const std::vector<Chunk>& chunks) {
    const Chunk& last = chunks.back();
    return GGML_PAD(last.file_offset + last.n_bytes, gguf_get_alignment(gguf));
}

void write_metadata(const gguf_context* gguf, PartialFile& file) {
    std::vector<std::byte> metadata(gguf_get_meta_size(gguf));
    gguf_get_meta_data(gguf, metadata.data());
    file.write_at(0, metadata);
}

void write_chunk(const Chunk& chunk, const RandomWeights& weights, PartialFile& file) {
    std::vector<std::byte> rows(chunk.n_bytes);
    weights.fill_rows(*chunk.tensor, chunk.first_row, rows);
    file.write_at(chunk.file_offset, rows);
}

}  // namespace

void check_random_model(const RandomModelOptions& options) {
    resolve(options);
}

void write_random_model(const RandomModelOptions& options, const std::filesystem::path& path) {
    const auto [shape, recipe, tensors] = resolve(options);
    const gguf_context_ptr gguf(gguf_init_empty());
    set_general(gguf.get(), shape, recipe);
    set_hyperparameters(gguf.get(), shape);
    set_vocabulary(gguf.get(), make_synthetic_vocab(shape.n_vocab));
    add_tensors(gguf.get(), tensors);

    const std::vector<Chunk> chunks = cut_chunks(gguf.get(), tensors);
    PartialFile file(path, file_size(gguf.get(), chunks));
    write_metadata(gguf.get(), file);
    const RandomWeights weights(options.seed, tensors);
    run_parallel(
        chunks.size(), [&](std::size_t i) { write_chunk(chunks[i], weights, file); },
        options.on_progress);
    file.publish();
}

std::string random_model_types() {
    return weight_type_names();
}

}  // namespace knap
