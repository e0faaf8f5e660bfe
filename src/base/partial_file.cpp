#include "base/partial_file.h"

#include <system_error>
#include <utility>

#include <fcntl.h>

#include "base/error.h"

namespace knap {

namespace {

namespace fs = std::filesystem;

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

PartialFile::PartialFile(fs::path path, std::uint64_t n_bytes) : path_(std::move(path)) {
    check_place(path_, n_bytes);
    fs::path partial_path = path_;
    partial_path += ".partial";
    file_.emplace(std::move(partial_path), O_TRUNC);
    try {
        file_->resize(n_bytes);
    } catch (...) {
        file_->remove();
        throw;
    }
}

PartialFile::~PartialFile() {
    if (file_) {
        file_->remove();
    }
}

void PartialFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    file_->write_at(offset, bytes);
}

void PartialFile::publish() {
    file_->move_to(path_);
    file_.reset();
}

void write_whole_file(const fs::path& path, std::string_view text) {
    PartialFile file(path, text.size());
    file.write_at(0, std::as_bytes(std::span(text)));
    file.publish();
}

}  // namespace knap
