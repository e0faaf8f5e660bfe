#include "runtime/files/plans_model.h"

#include <limits>

#include "base/error.h"
#include "base/quoted.h"
#include "runtime/files/json_file.h"

namespace knap {

void add_model(nlohmann::ordered_json& file, const PlansModel& model) {
    file["model"] = model.fingerprint;
    file["n_layers"] = model.n_layers;
}

void check_model(const nlohmann::json& file, const PlansModel& model) {
    const std::string fingerprint = text_in(file, "model");
    if (fingerprint != model.fingerprint) {
        fail("its model differs: expected ", in_quotes(model.fingerprint), ", found ",
             in_quotes(fingerprint));
    }
    const int n_layers = integer_in(file, "n_layers", 1, std::numeric_limits<int>::max());
    if (n_layers != model.n_layers) {
        fail("expected ", model.n_layers, " layers, found ", n_layers);
    }
}

}  // namespace knap
