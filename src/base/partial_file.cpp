#include "base/partial_file.h"

#include <atomic>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

namespace knap {

namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// No other process, and no other file of this one, has the same name while it is written. What has
// it already, a process of the same number may have left or be writing in another container, or
// somebody has guessed the name.
fs::path partial_path(const fs::path& path) {
    static std::atomic<int> n_files = 0;
    std::error_code ignored;
    fs::path partial;
    do {
        partial = path;
        partial += concat(".", ::getpid(), "-", ++n_files, ".partial");
    } while (fs::exists(fs::symlink_status(partial, ignored)));
    return partial;
}

// Locked. Until it is, another process may take it for abandoned and delete it.
std::unique_ptr<WrittenFile> locked_file(const fs::path& path) {
    for (;;) {
        auto file = std::make_unique<WrittenFile>(partial_path(path), O_EXCL);
        if (file->lock() && file->has_name()) {
            return file;
        }
    }
}

// Whether the name ends as partial_path() has it.
bool is_partial(std::string_view name) {
    constexpr std::string_view kEnd = ".partial";
    constexpr std::string_view kDigits = "0123456789";
    if (!name.ends_with(kEnd)) {
        return false;
    }
    name.remove_suffix(kEnd.size());
    const std::size_t dot = name.find_last_of('.');
    const std::string_view numbers = dot == name.npos ? "" : name.substr(dot + 1);
    const std::size_t dash = numbers.find('-');
    return dash != numbers.npos && dash > 0 && dash + 1 < numbers.size() &&
           numbers.find_first_not_of(kDigits) == dash &&
           numbers.find_first_not_of(kDigits, dash + 1) == numbers.npos;
}

void remove_if_unlocked(const fs::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) {
        return;
    }
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
        ::unlink(path.c_str());
    }
    ::close(descriptor);
}

// What others have left there takes space.
fs::path prepared_place(fs::path path, std::uint64_t n_bytes) {
    if (path.has_filename()) {
        remove_abandoned(folder_of(path), path.filename().string() + ".");
    }
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
    const fs::path folder = folder_of(path);
    if (!fs::is_directory(folder, error)) {
        fail(path.string(), ": the folder ", folder.string(), " does not exist");
    }
    const fs::space_info space = fs::space(folder, error);
    if (!error && space.available < n_bytes) {
        fail(path.string(), ": expected ", n_bytes, " free bytes in ", folder.string(), ", found ",
             space.available);
    }
}

void remove_abandoned(const fs::path& folder, std::string_view beginning) {
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
    while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (name.starts_with(beginning) && is_partial(name)) {
            remove_if_unlocked(folder / name);
        }
    }
}

PartialFile::PartialFile(fs::path path, std::uint64_t n_bytes)
    : path_(prepared_place(std::move(path), n_bytes)), file_(locked_file(path_)) {
    try {
        file_->resize(n_bytes);
    } catch (...) {
        file_->remove();
        throw;
    }
}

PartialFile::~PartialFile() {
    if (!is_published_) {
        file_->remove();
    }
}

void PartialFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    file_->write_at(offset, bytes);
}

void PartialFile::publish() {
    file_->sync();
    file_->move_to(path_);
    is_published_ = true;
}

void write_whole_file(const fs::path& path, std::string_view text) {
    PartialFile file(path, text.size());
    file.write_at(0, std::as_bytes(std::span(text)));
    file.publish();
}

}  // namespace knap
