// A valid model file of a few kilobytes, in parts: a test changes some and writes the result.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ggml-cpp.h"
#include "gguf.h"

namespace knap::test {

struct TinyTensor {
    std::string name;
    ggml_type type;
    std::vector<std::int64_t> ne;
    std::vector<float> values{};  // empty: a fixed pattern of small numbers
};

struct TinySizes {
    int n_layers = 2;
    int n_embd = 32;
    int n_heads = 4;
    int n_kv_heads = 2;
    int n_ff = 64;
    int n_vocab = 24;
    int head_dim() const { return n_embd / n_heads; }
};

class TinyGguf {
  public:
    // A file with only its architecture.
    static TinyGguf empty(std::string architecture);
    // A complete model.
    explicit TinyGguf(std::string architecture = "llama",
                      TinySizes sizes = {},
                      ggml_type matrix_type = GGML_TYPE_F32);

    const TinySizes& sizes() const { return sizes_; }
    std::string key(std::string_view field) const;  // "llama.block_count"

    gguf_context* metadata() { return metadata_.get(); }  // for ggml's functions
    std::vector<TinyTensor>& tensors() { return tensors_; }
    TinyTensor& tensor(std::string_view name);  // must exist
    void remove_tensor(std::string_view name);

    void write(const std::filesystem::path& path) const;
    std::vector<std::byte> bytes() const;

  private:
    struct Empty {};
    TinyGguf(std::string architecture, Empty /*tag*/);

    void add_metadata();
    void add_tensors(ggml_type matrix_type);

    std::string architecture_;
    TinySizes sizes_;
    gguf_context_ptr metadata_;
    std::vector<TinyTensor> tensors_;
};

// Writes a file into the folder of this test process and returns its path.
std::filesystem::path write_tiny(const TinyGguf& tiny, std::string_view name);
std::filesystem::path write_bytes(std::string_view name, const std::vector<std::byte>& bytes);
std::vector<std::byte> read_bytes(const std::filesystem::path& path);

}  // namespace knap::test
