// A file that is written from its beginning to its end, in several runs of the program if need be.
// It grows as a file of another name, which stays when the object or the process ends, unless it is
// empty, and appears under its own name only when complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/written_file.h"

namespace knap {

class ResumableFile {
  public:
    // Goes on behind the bytes that `partial_path` has. Throws knap::Error, like all below.
    ResumableFile(std::filesystem::path path, std::filesystem::path partial_path);
    ~ResumableFile();
    ResumableFile(const ResumableFile&) = delete;
    ResumableFile& operator=(const ResumableFile&) = delete;

    const std::filesystem::path& partial_path() const { return file_.path(); }
    std::uint64_t size() const { return n_bytes_; }
    void append(std::span<const std::byte> bytes);
    void restart();  // from the first byte
    // Deletes what was written. Nothing may follow.
    void discard() { file_.remove(); }
    // Moves the file to its final path, replacing any file there, once its bytes are on the disk.
    // Nothing may follow.
    void publish();

  private:
    std::filesystem::path path_;
    WrittenFile file_;
    std::uint64_t n_bytes_;
};

}  // namespace knap
