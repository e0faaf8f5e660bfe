#include "base/written_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace knap {
namespace {

std::string reason(int error) {
    return std::generic_category().message(error);
}

}  // namespace

WrittenFile::WrittenFile(std::filesystem::path path, int flags) : path_(std::move(path)) {
    descriptor_ = ::open(path_.c_str(), flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
        fail(path_.string(), ": cannot create: ", reason(errno));
    }
}

WrittenFile::~WrittenFile() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

std::uint64_t WrittenFile::size() const {
    struct stat status = {};
    if (::fstat(descriptor_, &status) != 0) {
        fail(path_.string(), ": cannot be examined: ", reason(errno));
    }
    return std::uint64_t(status.st_size);
}

void WrittenFile::resize(std::uint64_t n_bytes) {
    if (::ftruncate(descriptor_, off_t(n_bytes)) != 0) {
        fail(path_.string(), ": cannot reserve ", n_bytes, " bytes: ", reason(errno));
    }
}

void WrittenFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::pwrite(descriptor_, bytes.data(), bytes.size(), off_t(offset));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            fail(path_.string(), ": cannot write: ", reason(n < 0 ? errno : ENOSPC));
        }
        bytes = bytes.subspan(std::size_t(n));
        offset += std::uint64_t(n);
    }
}

void WrittenFile::sync() {
    if (::fsync(descriptor_) != 0) {
        fail(path_.string(), ": cannot finish writing: ", reason(errno));
    }
}

void WrittenFile::close_or_fail() {
    // Some file systems report a full disk only on close.
    if (::close(std::exchange(descriptor_, -1)) != 0) {
        fail(path_.string(), ": cannot finish writing: ", reason(errno));
    }
}

void WrittenFile::move_to(const std::filesystem::path& path) {
    close_or_fail();
    std::error_code error;
    std::filesystem::rename(path_, path, error);
    if (error) {
        fail(path.string(), ": cannot replace: ", error.message());
    }
}

void WrittenFile::remove() {
    if (descriptor_ >= 0) {
        ::close(std::exchange(descriptor_, -1));
    }
    ::unlink(path_.c_str());
}

}  // namespace knap
