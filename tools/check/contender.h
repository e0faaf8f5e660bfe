// A strategy with its settings, and the name that reports use for it.
#pragma once

#include <string>

#include "knap/types.h"

namespace knap {

struct Contender {
    std::string name;  // "static, windows of 16+64"
    SpeculationOptions speculation;
};

}  // namespace knap
