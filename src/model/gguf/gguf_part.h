// One of the GGUF files that make up a model: its bytes, metadata and tensors, checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ggml-cpp.h"
#include "gguf.h"

#include "base/mapped_file.h"
#include "model/gguf/gguf_file.h"

namespace knap {

class GgufPart {
  public:
    explicit GgufPart(const std::filesystem::path& path);  // throws knap::Error

    const std::filesystem::path& path() const { return path_; }
    std::span<const std::byte> bytes() const { return file_.bytes(); }
    const gguf_context* metadata() const { return metadata_.get(); }

    // The same as the functions of GgufFile.
    std::optional<std::string> string(std::string_view key) const;
    std::optional<std::uint64_t> integer(std::string_view key) const;
    std::optional<double> number(std::string_view key) const;
    std::optional<bool> boolean(std::string_view key) const;
    bool is_array(std::string_view key) const;
    std::optional<std::size_t> array_size(std::string_view key) const;
    std::optional<std::vector<std::uint64_t>> integers(std::string_view key) const;
    std::optional<std::vector<bool>> booleans(std::string_view key) const;
    // An integer that must have exactly this type, because libllama reads it without checking.
    std::optional<std::uint64_t> integer_of_type(std::string_view key, gguf_type type) const;

    // The tensors in file order, each with `part_index` as its part. Their data is inside the file.
    std::vector<TensorInfo> tensors(std::size_t part_index) const;

  private:
    struct Value;
    std::optional<Value> find(std::string_view key) const;
    std::uint64_t integer_at(std::string_view key, const Value& value, std::size_t index) const;
    TensorInfo tensor(std::int64_t id) const;
    [[noreturn]] void fail_type(std::string_view key,
                                std::string_view expected,
                                const Value& found) const;

    std::filesystem::path path_;
    MappedFile file_;
    gguf_context_ptr metadata_;
};

}  // namespace knap
