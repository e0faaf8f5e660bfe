// Every second layer, in the written form of plans.
#pragma once

#include <string>

#include "base/text.h"

namespace knap::bench {

// "1+3+5+..."
inline std::string every_second(int n_layers) {
    std::string text;
    for (int layer = 1; layer < n_layers; layer += 2) {
        text += concat(text.empty() ? "" : "+", layer);
    }
    return text;
}

}  // namespace knap::bench
