// One process at a time fetches into a folder. The system gives the lock back when a process ends,
// however it ends.
#pragma once

#include <filesystem>
#include <functional>

namespace knap {

class FolderLock {
  public:
    // Waits while another process has the lock, and calls `on_wait` ten times a second, which may
    // throw to give up. The folder must exist. Throws knap::Error.
    FolderLock(const std::filesystem::path& folder, const std::function<void()>& on_wait);
    ~FolderLock();
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;

  private:
    int descriptor_ = -1;
};

}  // namespace knap
