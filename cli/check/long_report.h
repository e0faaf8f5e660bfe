// The results of `knap check --tokens`, as tables and as a JSON object.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "tools/exactness/summary.h"

namespace knap {

std::string to_table(const ExactnessSummary& summary);
// Scripts rely on the field names: new fields may be added, none is renamed.
nlohmann::ordered_json to_json(const ExactnessSummary& summary);

}  // namespace knap
