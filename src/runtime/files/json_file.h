// Reads and writes knap's files, each of which is one JSON object. A file may be damaged or not
// ours: every function that reads throws knap::Error with a message to follow the file's name, such
// as "expected a number `ms`, found string".
#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace knap {

// Creates the folder if needed and replaces an existing file atomically. Throws knap::Error.
void write_json_file(const std::filesystem::path& path, const nlohmann::ordered_json& object);

// Returns nullopt if there is no such file. Throws if it cannot be read, is larger than any file of
// ours, or is not a single JSON object.
std::optional<nlohmann::json> read_json_file(const std::filesystem::path& path);

// Members of an object. `least` and `most` are the valid range.
const nlohmann::json& object_in(const nlohmann::json& object, const char* name);
const nlohmann::json& array_in(const nlohmann::json& object, const char* name);
std::string text_in(const nlohmann::json& object, const char* name);
bool flag_in(const nlohmann::json& object, const char* name);
// As largest values.
inline constexpr int kAnyInteger = std::numeric_limits<int>::max();
inline constexpr double kAnyNumber = std::numeric_limits<double>::max();
int integer_in(const nlohmann::json& object, const char* name, int least, int most);
double number_in(const nlohmann::json& object, const char* name, double least, double most);

// The members that every file begins with: its kind and the version of its format.
nlohmann::ordered_json file_header(std::string_view kind, int format);
void check_file_header(const nlohmann::json& object, std::string_view kind, int format);

}  // namespace knap
