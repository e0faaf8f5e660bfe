#include "cli/environment.h"

#include <cstdlib>
#include <system_error>

#include "base/cache_folder.h"
#include "base/error.h"

namespace knap {
namespace {

constexpr const char* kDefaultModel = "SmolLM2-135M-Instruct.Q4_1.gguf";

}  // namespace

Environment read_environment() {
    const char* no_color = std::getenv("NO_COLOR");
    return {.cache_folder = shared_cache_folder().value_or(""),
            .forbids_color = no_color != nullptr && *no_color != '\0'};
}

std::filesystem::path find_default_model(const Environment& environment) {
    if (environment.cache_folder.empty()) {
        fail("no model given and no cache folder known: use -m FILE, or set KNAP_CACHE or HOME");
    }
    auto path = environment.cache_folder / "models" / kDefaultModel;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
        fail("no model given and the default model is not at ", path.string(),
             ": use -m FILE, or fetch it with `make model` in knap's source folder");
    }
    return path;
}

}  // namespace knap
