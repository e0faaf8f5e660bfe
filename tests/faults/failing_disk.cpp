// A disk that fails: a library for LD_PRELOAD that takes the place of the functions with which
// knap writes files. It counts their calls for files in one folder and does something to one of
// them. tests/faults/failing_disk.h sets it up.
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

namespace {

constexpr int kMaxDescriptors = 4096;

const char* setting(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? "" : text;
}

std::atomic<int> n_calls{0};
std::atomic<bool> is_watched[kMaxDescriptors];
// Half of a write has arrived, and the rest does not fit.
std::atomic<bool> fails_next_write{false};

template <typename Function>
Function* real(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool is_in_folder(const char* path) {
    const char* folder = setting("FAILING_DISK_FOLDER");
    const std::size_t length = std::strlen(folder);
    return length > 0 && std::strncmp(path, folder, length) == 0 &&
           (path[length] == '/' || path[length] == '\0');
}

bool watches(int descriptor) {
    return descriptor >= 0 && descriptor < kMaxDescriptors && is_watched[descriptor];
}

// "CALL PATH" to the log, in one write.
void note(const char* call, const char* path) {
    const char* log = setting("FAILING_DISK_LOG");
    if (*log == '\0') {
        return;
    }
    char line[PATH_MAX + 32];
    const int n = std::snprintf(line, sizeof line, "%s %s\n", call, path);
    const int file =
        real<int(const char*, int, ...)>("open")(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    [[maybe_unused]] const auto n_written =
        real<ssize_t(int, const void*, size_t)>("write")(file, line, static_cast<std::size_t>(n));
    real<int(int)>("close")(file);
}

void note(const char* call, int descriptor) {
    char link[64];
    char path[PATH_MAX] = "";
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    [[maybe_unused]] const auto n = readlink(link, path, sizeof path - 1);
    note(call, path);
}

bool is_due() {
    return ++n_calls == std::atoi(setting("FAILING_DISK_CALL"));
}

bool kills() {
    return std::strcmp(setting("FAILING_DISK_ERROR"), "kill") == 0;
}

// What happens in place of a call that is due.
int strike() {
    if (kills()) {
        raise(SIGKILL);
    }
    errno = std::atoi(setting("FAILING_DISK_ERROR"));
    return -1;
}

int open_file(const char* path, int flags, mode_t mode) {
    const auto open_really = real<int(const char*, int, ...)>("open");
    const bool counts =
        is_in_folder(path) && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_DIRECTORY) != 0);
    if (counts) {
        note("open", path);
        if (is_due()) {
            return strike();
        }
    }
    const int descriptor = open_really(path, flags, mode);
    if (descriptor >= 0 && descriptor < kMaxDescriptors) {
        is_watched[descriptor] = counts;
    }
    return descriptor;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const auto mode = (flags & O_CREAT) != 0 ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
    va_end(arguments);
    return open_file(path, flags, mode);
}

int ftruncate(int descriptor, off_t n_bytes) {
    if (watches(descriptor)) {
        note("ftruncate", descriptor);
        if (is_due()) {
            return strike();
        }
    }
    return real<int(int, off_t)>("ftruncate")(descriptor, n_bytes);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t n_bytes, off_t offset) {
    const auto write_really = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
    if (!watches(descriptor)) {
        return write_really(descriptor, bytes, n_bytes, offset);
    }
    if (fails_next_write.exchange(false)) {
        return strike();
    }
    note("pwrite", descriptor);
    if (!is_due()) {
        return write_really(descriptor, bytes, n_bytes, offset);
    }
    if (n_bytes < 2) {
        return strike();
    }
    const ssize_t n_written = write_really(descriptor, bytes, n_bytes / 2, offset);
    if (kills()) {
        strike();
    }
    fails_next_write = true;
    return n_written;
}

int fsync(int descriptor) {
    if (watches(descriptor)) {
        note("fsync", descriptor);
        if (is_due()) {
            return strike();
        }
    }
    return real<int(int)>("fsync")(descriptor);
}

int close(int descriptor) {
    const auto close_really = real<int(int)>("close");
    if (!watches(descriptor)) {
        return close_really(descriptor);
    }
    is_watched[descriptor] = false;
    note("close", descriptor);
    const bool fails = is_due();
    if (fails && kills()) {
        strike();
    }
    close_really(descriptor);
    return fails ? strike() : 0;
}

int rename(const char* from, const char* to) {
    if (is_in_folder(to)) {
        note("rename", from);
        if (is_due()) {
            return strike();
        }
    }
    return real<int(const char*, const char*)>("rename")(from, to);
}

int mkdir(const char* path, mode_t mode) {
    if (is_in_folder(path)) {
        note("mkdir", path);
        if (is_due()) {
            return strike();
        }
    }
    return real<int(const char*, mode_t)>("mkdir")(path, mode);
}

}  // extern "C"
