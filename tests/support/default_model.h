// Where the tests with label `model` find the default model.
#pragma once

#include <filesystem>

namespace knap::test {

// The file that `deps/setup model` fetches. Throws when there is none: such a test must not pass.
std::filesystem::path default_model();

}  // namespace knap::test
