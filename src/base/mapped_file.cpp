#include "base/mapped_file.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace knap {
namespace {

class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

  private:
    int fd_;
};

// Checks the kind first, because opening a pipe or a device can block or have side effects.
void check_is_file(const std::filesystem::path& path) {
    struct stat status;
    if (::stat(path.c_str(), &status) != 0) {
        fail(path.string(), ": cannot be opened: ", std::strerror(errno));
    }
    if (S_ISDIR(status.st_mode)) {
        fail(path.string(), ": expected a GGUF file, found a directory");
    }
    if (!S_ISREG(status.st_mode)) {
        fail(path.string(), ": expected a GGUF file, found something that is not a regular file");
    }
    if (status.st_size == 0) {
        fail(path.string(), ": expected a GGUF file, found an empty file");
    }
}

std::size_t size_of(const Descriptor& file, const std::filesystem::path& path) {
    struct stat status;
    if (::fstat(file.get(), &status) != 0 || status.st_size <= 0) {
        fail(path.string(), ": its size cannot be read");
    }
    return static_cast<std::size_t>(status.st_size);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
    check_is_file(path);
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) {
        fail(path.string(), ": cannot be opened: ", std::strerror(errno));
    }
    const std::size_t size = size_of(file, path);
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
    if (address == MAP_FAILED) {
        fail(path.string(), ": cannot be mapped into memory: ", std::strerror(errno));
    }
    ::madvise(address, size, MADV_WILLNEED);  // starts read-ahead without blocking
    bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) {
        ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

void release_pages(std::span<const std::byte> bytes) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    const std::uintptr_t begin = (address + page - 1) / page * page;
    const std::uintptr_t end = (address + bytes.size()) / page * page;
    if (begin < end) {
        ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
}

}  // namespace knap
