// Helpers that read and write the JSON of a benchmark. Readers throw knap::Error with a message
// that the caller puts after the file's name: "row 3: turn 1: expected a number `plain_ms`, found
// none".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "runtime/files/json_file.h"

namespace knap {

// Unknown values are null.
template <typename T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

template <typename T, typename Convert>
nlohmann::ordered_json list_of(const std::vector<T>& values, Convert convert) {
    auto list = nlohmann::ordered_json::array();
    for (const T& value : values) {
        list.push_back(convert(value));
    }
    return list;
}

// Returns nullopt for null. A missing member is an error of `read`, which reads a member by name.
template <typename Read>
auto unless_null(const nlohmann::json& object, const char* name, Read read) {
    const auto found = object.find(name);
    const bool is_null = found != object.end() && found->is_null();
    return is_null ? std::nullopt : std::optional(read(object, name));
}

// Returns nullopt for null, and for a missing member, which older files may lack.
template <typename Read>
auto if_known(const nlohmann::json& object, const char* name, Read read) {
    return object.contains(name) ? unless_null(object, name, read)
                                 : decltype(unless_null(object, name, read))();
}

// Calls `read` for a part of a file and puts `what`, the part's name, before its errors.
template <typename Read>
auto read_part(const std::string& what, const nlohmann::json& part, Read read) {
    try {
        return read(part);
    } catch (const Error& error) {
        fail(what, ": ", error.what());
    }
}

template <typename Read>
auto read_object(const nlohmann::json& object, const char* name, Read read) {
    return read_part(name, object_in(object, name), read);
}

// Reads every element of a list; errors call the third one "`what` 3".
template <typename Read>
auto read_list(const nlohmann::json& object, const char* name, const char* what, Read read) {
    std::vector<decltype(read(object))> values;
    for (const nlohmann::json& element : array_in(object, name)) {
        values.push_back(read_part(concat(what, " ", values.size() + 1), element, read));
    }
    return values;
}

// Read members of an object, like those of runtime/files/json_file.h.
int count_in(const nlohmann::json& object, const char* name);
int positive_count_in(const nlohmann::json& object, const char* name);
std::int64_t large_count_in(const nlohmann::json& object, const char* name);
double amount_in(const nlohmann::json& object, const char* name);    // 0 or more
double positive_in(const nlohmann::json& object, const char* name);  // above 0: a safe divisor
double share_in(const nlohmann::json& object, const char* name);     // from 0 to 1
// The text of a plan that fits a model of `n_layers` layers.
std::string plan_in(const nlohmann::json& object, const char* name, int n_layers);

}  // namespace knap
