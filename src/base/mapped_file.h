// A file mapped read-only into memory while the object lives.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace knap {

class MappedFile {
  public:
    // Throws knap::Error when `path` is not a readable regular file or is empty.
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&&) = delete;

    std::span<const std::byte> bytes() const { return bytes_; }  // starts on a page boundary

  private:
    std::span<const std::byte> bytes_;
};

// Drops from this process's memory the pages that lie entirely inside `bytes`, a part of a mapped
// file. A later read loads them from the file again.
void release_pages(std::span<const std::byte> bytes);

}  // namespace knap
