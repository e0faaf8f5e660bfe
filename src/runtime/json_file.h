// Files of ours that hold one JSON object. What is read may be damaged or someone else's: every
// function that reads throws knap::Error in words that follow a file's name, such as "expected a
// number `ms`, found string".
#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace knap {

// Creates the folder where it is missing, and replaces a file of that name once the new one is
// whole. Throws knap::Error.
void write_json_file(const std::filesystem::path& path, const nlohmann::ordered_json& object);

// Nullopt: there is no such file. Throws where it cannot be read, is longer than files of ours are,
// or holds anything but one JSON object.
std::optional<nlohmann::json> read_json_file(const std::filesystem::path& path);

// Members of an object. `least` and `most` bound what can be.
const nlohmann::json& object_in(const nlohmann::json& object, const char* name);
const nlohmann::json& array_in(const nlohmann::json& object, const char* name);
std::string text_in(const nlohmann::json& object, const char* name);
bool flag_in(const nlohmann::json& object, const char* name);
inline constexpr int kAnyInteger = std::numeric_limits<int>::max();  // as a largest value
int integer_in(const nlohmann::json& object, const char* name, int least, int most);
double number_in(const nlohmann::json& object, const char* name, double least, double most);

// The members that every file of ours begins with: what it is, and in which version of that form.
nlohmann::ordered_json file_header(std::string_view kind, int format);
void check_file_header(const nlohmann::json& object, std::string_view kind, int format);

}  // namespace knap
