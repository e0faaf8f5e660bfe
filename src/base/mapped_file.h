// A file in memory, read-only, for as long as the object lives.
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

// Takes the pages that lie wholly inside `bytes`, a part of a mapped file, out of this process's
// memory. They come back from the file when they are read again.
void release_pages(std::span<const std::byte> bytes);

}  // namespace knap
