// A row of a benchmark as a JSON object, and back. bench_file.h has the file around it.
#pragma once

#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "measure/bench_report.h"

namespace knap {

nlohmann::ordered_json to_json(const BenchRow& row);
// Throws knap::Error in words that follow a file's name.
BenchRow row_from(const nlohmann::json& object);

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

// Nullopt: null. Throws where it is missing or something else.
std::optional<double> optional_number_in(const nlohmann::json& object, const char* name);

}  // namespace knap
