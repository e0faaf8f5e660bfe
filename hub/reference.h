// What a user calls a model on the hub: USER/REPO, USER/REPO:QUANT or USER/REPO:FILE.gguf.
#pragma once

#include <string>
#include <string_view>

namespace knap {

struct HubReference {
    std::string repository;  // "USER/REPO"; empty: none is wanted
    std::string quant{};     // such as "Q4_K_M"; empty: any
    std::string file{};      // path in the repository; empty: chosen by `quant`
};

// Throws knap::Error, which says what was expected. A repository that it returns has two parts that
// are safe as names of folders.
HubReference parse_hub_reference(std::string_view text);

}  // namespace knap
