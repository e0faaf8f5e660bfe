// Small random models for tests, written on first use and removed when the test process ends.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace knap {

// A folder for everything that this test process writes, removed at exit.
const std::filesystem::path& temporary_folder();

// A model of a shape and type that `knap make-model` knows, written once per (shape, type, seed).
std::filesystem::path tiny_model(std::string_view shape = "tiny-llama",
                                 std::string_view type = "F32",
                                 std::uint64_t seed = 0);

}  // namespace knap
