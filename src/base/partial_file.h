// A file that appears under its name only when it is whole: written as "<path>.partial", renamed by
// publish(), and removed when destroyed before that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace knap {

// Throws where no file of `n_bytes` can be written at `path`: what takes long asks this first.
void check_place(const std::filesystem::path& path, std::uint64_t n_bytes = 0);

class PartialFile {
  public:
    // Opens a file of `n_bytes` zeros. Throws knap::Error when `path` is no place for a file, or
    // lacks the room.
    PartialFile(std::filesystem::path path, std::uint64_t n_bytes);
    ~PartialFile();
    PartialFile(const PartialFile&) = delete;
    PartialFile& operator=(const PartialFile&) = delete;

    // May be called from several threads at once for ranges that do not overlap. Throws
    // knap::Error.
    void write_at(std::uint64_t offset, std::span<const std::byte> bytes);

    // Gives the file its name, replacing what was there. No write may follow.
    void publish();

  private:
    void close_or_fail();

    std::filesystem::path path_;
    std::filesystem::path partial_path_;
    int descriptor_ = -1;
};

// A file that is `text`, whole or not at all. Throws knap::Error.
void write_whole_file(const std::filesystem::path& path, std::string_view text);

}  // namespace knap
