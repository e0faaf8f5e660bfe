#include "base/written_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace knap {
namespace {

std::string reason(int error) {
    return std::generic_category().message(error);
}

struct stat status_of(int descriptor, const std::filesystem::path& path) {
    struct stat status = {};
    if (::fstat(descriptor, &status) != 0) {
        fail(path.string(), ": cannot be examined: ", reason(errno));
    }
    return status;
}

// A rename is on the disk once its folder is. Not every file system can be asked for that, and not
// every folder that can be written to can be read.
void sync_folder_of(const std::filesystem::path& path) {
    const std::filesystem::path parent = path.parent_path();
    const int folder =
        ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return;
    }
    const int error = ::fsync(folder) == 0 ? 0 : errno;
    ::close(folder);
    if (error != 0 && error != EINVAL && error != EROFS && error != ENOTSUP) {
        fail(path.string(), ": cannot finish writing: ", reason(error));
    }
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
    return std::uint64_t(status_of(descriptor_, path_).st_size);
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

bool WrittenFile::lock() {
    return ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

bool WrittenFile::has_name() const {
    return status_of(descriptor_, path_).st_nlink > 0;
}

void WrittenFile::move_to(const std::filesystem::path& path) {
    const int keeps_lock = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);  // until it has its new name
    std::error_code error;
    try {
        close_or_fail();
        std::filesystem::rename(path_, path, error);
    } catch (...) {
        ::close(keeps_lock);
        throw;
    }
    ::close(keeps_lock);
    if (error) {
        fail(path.string(), ": cannot replace: ", error.message());
    }
    sync_folder_of(path);
}

void WrittenFile::remove() {
    if (descriptor_ >= 0) {
        ::close(std::exchange(descriptor_, -1));
    }
    ::unlink(path_.c_str());
}

}  // namespace knap
