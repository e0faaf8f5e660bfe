#include "tools/exactness/temporary_folder.h"

#include <cstdlib>
#include <string>
#include <system_error>

#include "base/error.h"

namespace knap {

TemporaryFolder::TemporaryFolder() {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    std::string pattern = (parent / "knap-XXXXXX").string();
    if (error || ::mkdtemp(pattern.data()) == nullptr) {
        fail(pattern, ": cannot create a temporary folder");
    }
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;  // no one to report it to
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace knap
