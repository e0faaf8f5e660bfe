#include "support/llama_sources.h"

#include <system_error>

#include "base/cache_folder.h"

namespace knap::test {

namespace fs = std::filesystem;

fs::path llama_sources() {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(shared_cache_folder().value_or(""), ignored)) {
        if (entry.path().filename().string().starts_with("llama.cpp-") &&
            fs::exists(entry.path() / ".complete", ignored)) {
            return entry.path();
        }
    }
    return {};
}

}  // namespace knap::test
