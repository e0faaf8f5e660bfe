// Reads a model file, changes it and writes it again: other metadata, more tensors, several parts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ggml-cpp.h"
#include "gguf.h"

namespace knap::test {

class GgufVariant {
  public:
    explicit GgufVariant(const std::filesystem::path& path);

    gguf_context* metadata() { return metadata_.get(); }
    void add_f32(const char* name, const std::vector<float>& values);  // a one-dimensional tensor
    // Writes into the temporary folder under `name`.
    std::filesystem::path write(const std::string& name) const;
    // Writes `name`-00001-of-00002.gguf with all metadata and half of the tensors, and the second
    // part. Returns the path of the first.
    std::filesystem::path write_split(const std::string& name) const;

  private:
    std::vector<const ggml_tensor*> tensors() const;

    ggml_context_ptr tensors_;  // with their data
    ggml_context_ptr added_;
    gguf_context_ptr metadata_;
};

}  // namespace knap::test
