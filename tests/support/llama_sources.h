// The sources of llama.cpp that deps/setup fetches.
#pragma once

#include <filesystem>

namespace knap::test {

// Their folder; empty: they are not there.
std::filesystem::path llama_sources();

}  // namespace knap::test
