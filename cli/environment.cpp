#include "cli/environment.h"

#include <cstdlib>
#include <system_error>

#include "base/cache_folder.h"
#include "base/error.h"

namespace knap {
namespace {

constexpr const char* kDefaultModel = "SmolLM2-135M-Instruct.Q4_1.gguf";

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

std::string first_set(const char* name, const char* other) {
    const std::string value = variable(name);
    return value.empty() ? variable(other) : value;
}

}  // namespace

Environment read_environment() {
    return {.cache_folder = shared_cache_folder().value_or(""),
            .forbids_color = !variable("NO_COLOR").empty(),
            .host = variable("KNAP_HOST"),
            .port = variable("KNAP_PORT"),
            .api_key = variable("KNAP_API_KEY"),
            .hub = {.endpoint = first_set("MODEL_ENDPOINT", "HF_ENDPOINT"),
                    .token = variable("HF_TOKEN"),
                    .offline = variable("HF_HUB_OFFLINE"),
                    .timeout = variable("HF_HUB_DOWNLOAD_TIMEOUT"),
                    .certificates = variable("SSL_CERT_FILE")}};
}

std::filesystem::path find_default_model(const Environment& environment) {
    if (environment.cache_folder.empty()) {
        fail("no model given and no cache folder known: use -m FILE, or set KNAP_CACHE or HOME");
    }
    auto path = environment.cache_folder / "models" / kDefaultModel;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
        fail(
            "no model given and the default model is not at ", path.string(),
            ": use -m FILE, or fetch it with `make model` in knap's source folder, or another with "
            "-hf USER/REPO");
    }
    return path;
}

}  // namespace knap
