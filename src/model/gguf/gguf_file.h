// A GGUF model on disk, one file or several (-00001-of-0000N.gguf), mapped read-only. ggml parses
// it. What ggml accepts is checked again here, so that all data of a GgufFile is inside the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ggml.h"

struct gguf_context;

namespace knap {

struct TensorInfo {
    std::string name;
    ggml_type type;
    std::int64_t ne[4];  // ggml order, 1 after the last dimension
    std::size_t n_bytes;
    std::size_t part;       // index into GgufFile::mappings()
    std::size_t offset;     // from the start of that part
    const std::byte* data;  // into the mapping
};

class GgufFile {
  public:
    // Throws knap::Error when `path` is not a readable GGUF model: missing, not a file, truncated
    // or corrupt.
    static GgufFile open(const std::filesystem::path& path);
    ~GgufFile();
    GgufFile(GgufFile&&) noexcept;

    const std::filesystem::path& path() const;
    std::size_t total_bytes() const;

    // Metadata of the first part. Returns nullopt when the key is absent; throws knap::Error,
    // naming file and key, when it has another type. An integer may have any integer type but must
    // not be negative; a number may have any integer or float type; bools of an array, any integer.
    std::optional<std::string> string(std::string_view key) const;
    std::optional<std::uint64_t> integer(std::string_view key) const;
    std::optional<double> number(std::string_view key) const;
    std::optional<bool> boolean(std::string_view key) const;
    bool is_array(std::string_view key) const;  // false when absent
    std::optional<std::size_t> array_size(std::string_view key) const;
    std::optional<std::vector<std::uint64_t>> integers(std::string_view key) const;  // an array
    std::optional<std::vector<bool>> booleans(std::string_view key) const;           // an array

    const gguf_context* metadata() const;  // for checks that need the exact types

    const std::vector<TensorInfo>& tensors() const;                // of all parts
    const TensorInfo* find(std::string_view name) const;           // returns null when absent
    std::span<const std::span<const std::byte>> mappings() const;  // one per part

  private:
    struct Impl;
    explicit GgufFile(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
