// Everything that the time of a pass depends on, by name. A profile is valid only if all of it is
// the same.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "knap/knap.h"

namespace knap {

struct MachineFingerprint {
    std::vector<std::pair<std::string, std::string>> fields;  // name, value

    std::string hash() const;  // 16 hexadecimal digits, from names and values in order
    bool operator==(const MachineFingerprint&) const = default;
};

// The fields of a file that holds for one machine only. Checking throws as json_file.h describes,
// and says which field differs.
void add_fields(nlohmann::ordered_json& file, const MachineFingerprint& fingerprint);
void check_fields(const nlohmann::json& file, const MachineFingerprint& expected);

MachineFingerprint machine_fingerprint(const Engine::Impl& engine);

// Which products compute a model: "ggml", or our kernel and the weight types it supports.
std::string describe_products(const Engine::Impl& engine);

// The model only: 16 hexadecimal digits, for data that is valid on every machine.
std::string model_fingerprint(const Engine::Impl& engine);

}  // namespace knap
