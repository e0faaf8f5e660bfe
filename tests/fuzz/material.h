// Texts for seeds and dictionaries, taken from where the repository has them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace knap::fuzz {

// A file or folder, by its path from the root of the repository.
std::filesystem::path in_repository(std::string_view path);

// The string literals of a C++ source, or of all sources in a folder. Literals next to each other
// are one.
std::vector<std::string> string_literals(std::string_view path);

// The pieces of code in a document: `these`, and blocks between lines of ```.
std::vector<std::string> code_in(std::string_view document);

// Those that have one of the words in them.
std::vector<std::string> with_any(const std::vector<std::string>& texts,
                                  const std::vector<std::string_view>& words);

// Texts that nest deeply or are long: what parsers that descend into a text, or take quadratic
// time, do not survive. Longer than fuzzing makes inputs, so only the tests run them.
std::vector<std::string> deep_and_long();

}  // namespace knap::fuzz
