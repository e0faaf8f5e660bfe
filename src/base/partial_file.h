// A file that appears under its name only when complete. It is written under a name of its own,
// "<path>.<process>-<n>.partial", and renamed by publish() once its bytes are on the disk. If the
// object is destroyed before that, the file is deleted. What a process that was killed has left is
// deleted by the next one that writes the same file: writers have a lock, which ends with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "base/written_file.h"

namespace knap {

// Throws knap::Error when no file of `n_bytes` can be written at `path`. Call it before long work.
void check_place(const std::filesystem::path& path, std::uint64_t n_bytes = 0);

// Deletes the files in the folder whose names begin so and that writers that are no more have left
// unfinished, as far as that is possible.
void remove_abandoned(const std::filesystem::path& folder, std::string_view beginning);

class PartialFile {
  public:
    // Creates a file of `n_bytes` zeros. Throws knap::Error when `path` cannot be a file or the
    // disk lacks the space.
    PartialFile(std::filesystem::path path, std::uint64_t n_bytes);
    ~PartialFile();
    PartialFile(const PartialFile&) = delete;
    PartialFile& operator=(const PartialFile&) = delete;

    // Several threads may write at once if their ranges do not overlap. Throws knap::Error.
    void write_at(std::uint64_t offset, std::span<const std::byte> bytes);

    // Moves the file to its final path, replacing any file there. No write may follow.
    void publish();

  private:
    std::filesystem::path path_;
    std::unique_ptr<WrittenFile> file_;
    bool is_published_ = false;
};

// Writes `text` to the file, completely or not at all. Throws knap::Error.
void write_whole_file(const std::filesystem::path& path, std::string_view text);

}  // namespace knap
