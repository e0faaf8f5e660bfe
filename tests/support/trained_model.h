// A small model that writes English. Its drafts are often accepted, unlike those of a random model.
#pragma once

#include <filesystem>

namespace knap::test {

// A llama over bytes, 12 layers, Q8_0 (docs/results/trained.md).
std::filesystem::path trained_model();

}  // namespace knap::test
