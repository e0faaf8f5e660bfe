#include "base/file_lock.h"

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"

namespace knap {
namespace {

[[noreturn]] void fail_lock(const std::filesystem::path& path, int error) {
    fail(path.string(), ": cannot lock: ", std::generic_category().message(error));
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path,
                   const std::function<void()>& on_wait,
                   std::chrono::milliseconds pause) {
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
        fail_lock(path, errno);
    }
    try {
        while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK && errno != EINTR) {
                fail_lock(path, errno);
            }
            on_wait();
            std::this_thread::sleep_for(pause);
        }
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

FileLock::~FileLock() {
    ::close(descriptor_);
}

}  // namespace knap
