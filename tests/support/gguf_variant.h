// Reads a model file, changes it and writes it again: other metadata, more tensors, several parts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ggml-cpp.h"
#include "gguf.h"

namespace knap::test {

class GgufVariant {
  public:
    explicit GgufVariant(const std::filesystem::path& path);

    gguf_context* metadata() { return metadata_.get(); }
    // Of one dimension, or of rows of `n_columns`.
    void add_f32(const char* name, const std::vector<float>& values, std::int64_t n_columns = 0);
    void remove(const std::string& name) { changed_[name] = nullptr; }
    void narrow(const std::string& name);           // takes one from its last dimension
    std::vector<std::string> names() const;         // of the tensors
    std::string key(std::string_view field) const;  // of the architecture: "llama.block_count"
    // Of an F32 tensor, as it is in the file.
    std::vector<float> values(const std::string& name) const;
    // Writes into the temporary folder under `name`.
    std::filesystem::path write(const std::string& name) const;
    // Writes `name`-00001-of-00002.gguf with all metadata and half of the tensors, and the second
    // part. Returns the path of the first.
    std::filesystem::path write_split(const std::string& name) const;

  private:
    std::vector<const ggml_tensor*> tensors() const;

    ggml_context_ptr tensors_;  // with their data
    ggml_context_ptr added_;
    std::map<std::string, std::unique_ptr<ggml_tensor>> changed_;  // null: removed
    gguf_context_ptr metadata_;
};

}  // namespace knap::test
