// A folder for files that nobody needs once the process, or the object, is gone.
#pragma once

#include <filesystem>

namespace knap {

class TemporaryFolder {
  public:
    // A new folder where the system keeps temporary files. Throws knap::Error.
    TemporaryFolder();
    ~TemporaryFolder();  // deletes it with everything in it
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace knap
