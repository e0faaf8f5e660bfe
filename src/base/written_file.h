// A file that is being written, by its descriptor. For base/partial_file.h and
// base/resumable_file.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace knap {

class WrittenFile {
  public:
    // Opens or creates the file with the `flags` of open(). Throws knap::Error, like all below.
    WrittenFile(std::filesystem::path path, int flags);
    ~WrittenFile();
    WrittenFile(const WrittenFile&) = delete;
    WrittenFile& operator=(const WrittenFile&) = delete;

    const std::filesystem::path& path() const { return path_; }
    std::uint64_t size() const;
    void resize(std::uint64_t n_bytes);
    // Several threads may write at once if their ranges do not overlap.
    void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
    void sync();  // to the disk
    // Takes the lock of the file, for as long as it is open. False: somebody else has it. True also
    // where the file system has no locks.
    bool lock();
    bool has_name() const;  // false: somebody has deleted it
    // Closes the file and renames it, and waits until the disk has the new name. No write may
    // follow.
    void move_to(const std::filesystem::path& path);
    // Closes the file and deletes it. Does not throw.
    void remove();

  private:
    void close_or_fail();

    std::filesystem::path path_;
    int descriptor_ = -1;
};

}  // namespace knap
