// Pieces of which a benchmark's JSON is read and written. What reads throws knap::Error in words
// that follow a file's name: "row 3: turn 1: expected a number `plain_ms`, found none".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "runtime/json_file.h"

namespace knap {

// What is not known is null.
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

// Nullopt: null. What is missing is an error of `read`, a reader of members.
template <typename Read>
auto unless_null(const nlohmann::json& object, const char* name, Read read) {
    const auto found = object.find(name);
    const bool is_null = found != object.end() && found->is_null();
    return is_null ? std::nullopt : std::optional(read(object, name));
}

// Nullopt: null, or missing, as what older files do not have.
template <typename Read>
auto if_known(const nlohmann::json& object, const char* name, Read read) {
    return object.contains(name) ? unless_null(object, name, read)
                                 : decltype(unless_null(object, name, read))();
}

// What `read` makes of a part of a file; its errors say which one they are about.
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

// Every element of a list; an error calls the third one "`what` 3".
template <typename Read>
auto read_list(const nlohmann::json& object, const char* name, const char* what, Read read) {
    std::vector<decltype(read(object))> values;
    for (const nlohmann::json& element : array_in(object, name)) {
        values.push_back(read_part(concat(what, " ", values.size() + 1), element, read));
    }
    return values;
}

// Members of an object, like those of runtime/json_file.h.
int count_in(const nlohmann::json& object, const char* name);
int positive_count_in(const nlohmann::json& object, const char* name);
std::int64_t large_count_in(const nlohmann::json& object, const char* name);
double amount_in(const nlohmann::json& object, const char* name);    // 0 or more
double positive_in(const nlohmann::json& object, const char* name);  // what may be divided by
double share_in(const nlohmann::json& object, const char* name);     // from 0 to 1
// The text of a plan that fits a model of so many layers.
std::string plan_in(const nlohmann::json& object, const char* name, int n_layers);

}  // namespace knap
