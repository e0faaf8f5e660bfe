// What the layers of a model compute beyond a plain dense decoder, in words.
#pragma once

#include <string>

#include "model/config.h"

namespace knap {

// "5 of 6 attend to 24 tokens, 5 rotate with base 10000, gelu"; empty: nothing more.
std::string describe_layers(const ModelConfig& config);

}  // namespace knap
