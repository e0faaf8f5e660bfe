// The result of a request as a line, a table or a JSON object.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "knap/knap.h"

#include "base/number_text.h"

namespace knap {

// "24 prompt tokens (310.2 tokens/s), 64 generated (45.1 tokens/s, 4.9 GB/s)", and when anything
// was drafted "; 20 rounds, 72.1 % of 61 drafted tokens accepted, 3.20 tokens per round"
std::string statistics_line(const Result& result);

// The content of the line, and context, memory and graphs.
std::string statistics_table(const Result& result,
                             std::size_t n_history,
                             const RuntimeConfig& config);

// Scripts rely on the field names: new fields may be added, none is renamed.
nlohmann::ordered_json to_json(const Result& result, const RuntimeConfig& config);

std::string format_bytes(std::int64_t n_bytes);  // "98.3 MB", decimal
std::string format_percent(double share);        // "72.1 %"

}  // namespace knap
