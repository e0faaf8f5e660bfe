#include "support/default_model.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace knap::test {
namespace {

std::filesystem::path cache_folder() {
    if (const char* cache = std::getenv("KNAP_CACHE")) {
        return cache;
    }
    if (const char* cache = std::getenv("XDG_CACHE_HOME")) {
        return std::filesystem::path(cache) / "knap";
    }
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home != nullptr ? home : "/") / ".cache" / "knap";
}

}  // namespace

std::filesystem::path default_model() {
    const char* chosen = std::getenv("KNAP_MODEL");
    const auto path = chosen != nullptr
                          ? std::filesystem::path(chosen)
                          : cache_folder() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf";
    if (!std::filesystem::exists(path)) {
        throw std::runtime_error("expected the default model at " + path.string() +
                                 ": run deps/setup model");
    }
    return path;
}

}  // namespace knap::test
