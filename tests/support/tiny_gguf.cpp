#include "support/tiny_gguf.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "support/tiny_model.h"

namespace knap::test {

TinyGguf::TinyGguf(std::string architecture, Empty /*tag*/)
    : architecture_(std::move(architecture)), metadata_(gguf_init_empty()) {
    gguf_set_val_str(metadata(), "general.architecture", architecture_.c_str());
}

TinyGguf TinyGguf::empty(std::string architecture) {
    return {std::move(architecture), Empty{}};
}

TinyGguf::TinyGguf(std::string architecture, TinySizes sizes, ggml_type matrix_type)
    : TinyGguf(std::move(architecture), Empty{}) {
    sizes_ = sizes;
    add_metadata();
    add_tensors(matrix_type);
}

std::string TinyGguf::key(std::string_view field) const {
    return architecture_ + "." + std::string(field);
}

void TinyGguf::add_metadata() {
    gguf_context* meta = metadata_.get();
    const auto set_count = [&](std::string_view field, int value) {
        gguf_set_val_u32(meta, key(field).c_str(), static_cast<std::uint32_t>(value));
    };
    gguf_set_val_str(meta, "general.name", "tiny");
    set_count("block_count", sizes_.n_layers);
    set_count("context_length", 128);
    set_count("embedding_length", sizes_.n_embd);
    set_count("feed_forward_length", sizes_.n_ff);
    set_count("attention.head_count", sizes_.n_heads);
    set_count("attention.head_count_kv", sizes_.n_kv_heads);
    gguf_set_val_f32(meta, key("attention.layer_norm_rms_epsilon").c_str(), 1e-5f);
    gguf_set_val_f32(meta, key("rope.freq_base").c_str(), 10000.0f);

    std::vector<std::string> tokens;
    std::vector<const char*> token_texts;
    std::vector<std::int32_t> types(static_cast<std::size_t>(sizes_.n_vocab), 1);  // normal
    for (int i = 0; i < sizes_.n_vocab; ++i) {
        tokens.push_back("t" + std::to_string(i));
    }
    for (const std::string& token : tokens) {
        token_texts.push_back(token.c_str());
    }
    const char* merges[] = {"t 1", "t 2"};
    gguf_set_val_str(meta, "tokenizer.ggml.model", "gpt2");
    gguf_set_val_str(meta, "tokenizer.ggml.pre", "default");
    gguf_set_arr_str(meta, "tokenizer.ggml.tokens", token_texts.data(), token_texts.size());
    gguf_set_arr_data(meta, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(),
                      types.size());
    gguf_set_arr_str(meta, "tokenizer.ggml.merges", merges, std::size(merges));
    gguf_set_val_u32(meta, "tokenizer.ggml.bos_token_id", 0);
    gguf_set_val_u32(meta, "tokenizer.ggml.eos_token_id", 1);
    gguf_set_val_bool(meta, "tokenizer.ggml.add_bos_token", false);
}

void TinyGguf::add_tensors(ggml_type matrix_type) {
    const std::int64_t n_embd = sizes_.n_embd;
    const std::int64_t n_kv = sizes_.n_kv_heads * sizes_.head_dim();
    const std::int64_t n_ff = sizes_.n_ff;
    const auto matrix = [&](const std::string& name, std::int64_t n_in, std::int64_t n_out) {
        tensors_.push_back({name, matrix_type, {n_in, n_out}});
    };
    const auto vector = [&](const std::string& name, std::int64_t n) {
        tensors_.push_back({name, GGML_TYPE_F32, {n}});
    };
    matrix("token_embd.weight", n_embd, sizes_.n_vocab);
    vector("output_norm.weight", n_embd);
    matrix("output.weight", n_embd, sizes_.n_vocab);
    for (int layer = 0; layer < sizes_.n_layers; ++layer) {
        const std::string prefix = "blk." + std::to_string(layer) + ".";
        vector(prefix + "attn_norm.weight", n_embd);
        matrix(prefix + "attn_q.weight", n_embd, n_embd);
        matrix(prefix + "attn_k.weight", n_embd, n_kv);
        matrix(prefix + "attn_v.weight", n_embd, n_kv);
        matrix(prefix + "attn_output.weight", n_embd, n_embd);
        vector(prefix + "ffn_norm.weight", n_embd);
        matrix(prefix + "ffn_gate.weight", n_embd, n_ff);
        matrix(prefix + "ffn_up.weight", n_embd, n_ff);
        matrix(prefix + "ffn_down.weight", n_ff, n_embd);
        if (architecture_ == "qwen3") {
            vector(prefix + "attn_q_norm.weight", sizes_.head_dim());
            vector(prefix + "attn_k_norm.weight", sizes_.head_dim());
        }
    }
}

TinyTensor& TinyGguf::tensor(std::string_view name) {
    const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                    [&](const TinyTensor& t) { return t.name == name; });
    if (found == tensors_.end()) {
        throw std::logic_error("no tensor " + std::string(name));
    }
    return *found;
}

void TinyGguf::remove_tensor(std::string_view name) {
    tensors_.erase(tensors_.begin() + (&tensor(name) - tensors_.data()));
}

namespace {

// Multiples of 1/16 from -1 to 1.
std::vector<float> pattern(std::size_t n) {
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) {
        values[i] = static_cast<float>(static_cast<int>(i * 7 % 33) - 16) / 16.0f;
    }
    return values;
}

// Stores values in the tensor's type.
void fill(ggml_tensor* tensor, const std::vector<float>& values) {
    ggml_quantize_chunk(tensor->type, values.data(), tensor->data, 0, ggml_nrows(tensor),
                        tensor->ne[0], nullptr);
}

}  // namespace

void TinyGguf::write(const std::filesystem::path& path) const {
    const ggml_context_ptr context(ggml_init({std::size_t{1} << 24, nullptr, false}));
    const gguf_context_ptr output(gguf_init_empty());
    gguf_set_kv(output.get(), metadata_.get());
    for (const TinyTensor& spec : tensors_) {
        ggml_tensor* tensor = ggml_new_tensor(context.get(), spec.type,
                                              static_cast<int>(spec.ne.size()), spec.ne.data());
        ggml_set_name(tensor, spec.name.c_str());
        if (ggml_is_quantized(spec.type) || spec.type == GGML_TYPE_F32 ||
            spec.type == GGML_TYPE_F16 || spec.type == GGML_TYPE_BF16) {
            fill(tensor, spec.values.empty()
                             ? pattern(static_cast<std::size_t>(ggml_nelements(tensor)))
                             : spec.values);
        }
        gguf_add_tensor(output.get(), tensor);
    }
    if (!gguf_write_to_file(output.get(), path.c_str(), false)) {
        throw std::runtime_error("cannot write " + path.string());
    }
}

std::vector<std::byte> TinyGguf::bytes() const {
    const std::filesystem::path path = temporary_folder() / "tiny_gguf_bytes.gguf";
    write(path);
    return read_bytes(path);
}

std::filesystem::path write_tiny(const TinyGguf& tiny, std::string_view name) {
    const std::filesystem::path path = temporary_folder() / name;
    tiny.write(path);
    return path;
}

std::filesystem::path write_bytes(std::string_view name, const std::vector<std::byte>& bytes) {
    const std::filesystem::path path = temporary_folder() / name;
    std::filesystem::remove(path);  // some file systems wait for the disk when a file is rewritten
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
}

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::byte> bytes(chars.size());
    std::transform(chars.begin(), chars.end(), bytes.begin(), [](char c) { return std::byte(c); });
    return bytes;
}

}  // namespace knap::test
