// The model that the plans of a file belong to. Functions that read throw as json_file.h describes.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace knap {

struct PlansModel {
    std::string fingerprint;  // model_fingerprint()
    int n_layers = 0;
};

void add_model(nlohmann::ordered_json& file, const PlansModel& model);
// Throws if the file belongs to another model.
void check_model(const nlohmann::json& file, const PlansModel& model);

}  // namespace knap
