// One process at a time, by a lock on a file that is there for nothing else. The system gives the
// lock back when a process ends, however it ends.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>

namespace knap {

class FileLock {
  public:
    // Creates the file if needed; its folder must exist. Waits while another process, or another
    // object of this one, has the lock, and calls `on_wait` before every pause, which may throw to
    // give up. Throws knap::Error.
    FileLock(const std::filesystem::path& path,
             const std::function<void()>& on_wait,
             std::chrono::milliseconds pause = std::chrono::milliseconds{100});
    ~FileLock();
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

  private:
    int descriptor_ = -1;
};

}  // namespace knap
