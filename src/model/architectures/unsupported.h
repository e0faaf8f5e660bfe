// Architectures that people have files of and knap does not run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace knap {

// Why, and the nearest architecture that runs: " (recurrent layers; the nearest is qwen3)". Empty
// if nothing is known about the architecture.
std::string why_unsupported(std::string_view architecture);
// Those of which something is known, in alphabetical order.
std::vector<std::string_view> unsupported_names();

}  // namespace knap
