// Small random models for tests, written on first use and removed when the test process ends.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace knap {

// A folder for everything that this test process writes, removed at exit.
const std::filesystem::path& temporary_folder();

// A model of a shape and type that `knap make-model` knows, written once per (shape, type, seed).
std::filesystem::path tiny_model(std::string_view shape = "tiny-llama",
                                 std::string_view type = "F32",
                                 std::uint64_t seed = 0);

// The names of all shapes that begin with this.
std::vector<const char*> shapes_named(std::string_view beginning);
// As a part of the name of a test: "tiny_ernie4_5".
std::string test_name_of(std::string shape);
// For suites whose parameter is the name of a shape.
inline constexpr auto name_of_shape = [](const auto& test) { return test_name_of(test.param); };

}  // namespace knap
