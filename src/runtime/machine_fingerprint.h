// Everything that the time of a pass depends on, by name: a profile holds where all of it is the
// same.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "knap/knap.h"

namespace knap {

struct MachineFingerprint {
    std::vector<std::pair<std::string, std::string>> fields;  // name, value

    std::string hash() const;  // 16 hexadecimal digits, of names and values in their order
    bool operator==(const MachineFingerprint&) const = default;
};

MachineFingerprint machine_fingerprint(const Engine::Impl& engine);

// Whose products compute a model: "ggml", or our kernel and the types that it takes.
std::string describe_products(const Engine::Impl& engine);

// The model alone: 16 hexadecimal digits, for what holds on every machine.
std::string model_fingerprint(const Engine::Impl& engine);

}  // namespace knap
