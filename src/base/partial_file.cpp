#include "base/partial_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"

namespace knap {

namespace {

namespace fs = std::filesystem;

std::string reason(int error) {
    return std::generic_category().message(error);
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

PartialFile::PartialFile(fs::path path, std::uint64_t n_bytes) : path_(std::move(path)) {
    check_place(path_, n_bytes);
    partial_path_ = path_;
    partial_path_ += ".partial";
    descriptor_ = ::open(partial_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
        fail(partial_path_.string(), ": cannot create: ", reason(errno));
    }
    if (::ftruncate(descriptor_, off_t(n_bytes)) != 0) {
        const int error = errno;
        ::close(descriptor_);
        ::unlink(partial_path_.c_str());
        fail(partial_path_.string(), ": cannot reserve ", n_bytes, " bytes: ", reason(error));
    }
}

PartialFile::~PartialFile() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
    if (!partial_path_.empty()) {
        ::unlink(partial_path_.c_str());
    }
}

void PartialFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::pwrite(descriptor_, bytes.data(), bytes.size(), off_t(offset));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            fail(partial_path_.string(), ": cannot write: ", reason(n < 0 ? errno : ENOSPC));
        }
        bytes = bytes.subspan(std::size_t(n));
        offset += std::uint64_t(n);
    }
}

void PartialFile::close_or_fail() {
    // Some file systems report a full disk only on close.
    if (::close(std::exchange(descriptor_, -1)) != 0) {
        fail(partial_path_.string(), ": cannot finish writing: ", reason(errno));
    }
}

void PartialFile::publish() {
    close_or_fail();
    std::error_code error;
    fs::rename(partial_path_, path_, error);
    if (error) {
        fail(path_.string(), ": cannot replace: ", error.message());
    }
    partial_path_.clear();
}

void write_whole_file(const fs::path& path, std::string_view text) {
    PartialFile file(path, text.size());
    file.write_at(0, std::as_bytes(std::span(text)));
    file.publish();
}

}  // namespace knap
