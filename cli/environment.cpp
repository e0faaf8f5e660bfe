#include "environment.h"

#include <cstdlib>
#include <system_error>

#include "base/error.h"

namespace knap {
namespace {

constexpr const char* kDefaultModel = "SmolLM2-135M-Instruct.Q4_1.gguf";

std::filesystem::path folder_from(const char* variable, const char* below) {
    const char* value = std::getenv(variable);
    const bool is_set = value != nullptr && *value != '\0';
    return is_set ? std::filesystem::path(value) / below : std::filesystem::path();
}

std::filesystem::path find_cache_folder() {
    for (const auto& folder : {folder_from("KNAP_CACHE", ""), folder_from("XDG_CACHE_HOME", "knap"),
                               folder_from("HOME", ".cache/knap")}) {
        if (!folder.empty()) {
            return folder;
        }
    }
    return {};
}

}  // namespace

Environment read_environment() {
    const char* no_color = std::getenv("NO_COLOR");
    return {.cache_folder = find_cache_folder(),
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
