// Which model the plans of a file are of. The functions that read throw as json_file.h says.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace knap {

struct PlansModel {
    std::string fingerprint;  // model_fingerprint()
    int n_layers = 0;
};

void add_model(nlohmann::ordered_json& file, const PlansModel& model);
// Throws where the file is of another.
void check_model(const nlohmann::json& file, const PlansModel& model);

}  // namespace knap
