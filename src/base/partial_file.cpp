#include "base/partial_file.h"

#include <atomic>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

namespace knap {

namespace {

namespace fs = std::filesystem;

// No other process, and no other file of this one, has the same name while it is written.
fs::path partial_path(const fs::path& path) {
    static std::atomic<int> n_files = 0;
    fs::path partial = path;
    partial += concat(".", ::getpid(), "-", ++n_files, ".partial");
    return partial;
}

fs::path checked_place(fs::path path, std::uint64_t n_bytes) {
    check_place(path, n_bytes);
    return path;
}

}  // namespace

void check_place(const fs::path& path, std::uint64_t n_bytes) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (path.empty()) {
        fail("expected the path of a file to write, found an empty one");
    }
    if (fs::exists(status) && !fs::is_regular_file(status)) {
        fail(path.string(), ": expected a regular file or no file, found something else");
    }
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (!fs::is_directory(folder, error)) {
        fail(path.string(), ": the folder ", folder.string(), " does not exist");
    }
    const fs::space_info space = fs::space(folder, error);
    if (!error && space.available < n_bytes) {
        fail(path.string(), ": expected ", n_bytes, " free bytes in ", folder.string(), ", found ",
             space.available);
    }
}

PartialFile::PartialFile(fs::path path, std::uint64_t n_bytes)
    : path_(checked_place(std::move(path), n_bytes)), file_(partial_path(path_), O_TRUNC) {
    try {
        file_.resize(n_bytes);
    } catch (...) {
        file_.remove();
        throw;
    }
}

PartialFile::~PartialFile() {
    if (!is_published_) {
        file_.remove();
    }
}

void PartialFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    file_.write_at(offset, bytes);
}

void PartialFile::publish() {
    file_.sync();
    file_.move_to(path_);
    is_published_ = true;
}

void write_whole_file(const fs::path& path, std::string_view text) {
    PartialFile file(path, text.size());
    file.write_at(0, std::as_bytes(std::span(text)));
    file.publish();
}

}  // namespace knap
