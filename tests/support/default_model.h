// The default model, for tests labelled `model`.
#pragma once

#include <filesystem>

namespace knap::test {

// The file that `deps/setup model` downloads. Throws when it is missing, so such a test cannot
// pass.
std::filesystem::path default_model();

}  // namespace knap::test
