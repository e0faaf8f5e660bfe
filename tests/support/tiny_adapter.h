// Adapters for small models, with random weights.
#pragma once

#include "support/tiny_gguf.h"

namespace knap::test {

// Defaults fit the models of 64 channels.
struct TinyAdapterShape {
    int exit_layer = 2;
    int n_embd = 64;
    int n_heads = 4;
    ggml_type type = GGML_TYPE_Q8_0;
    float gain = 2;  // of its attention; a small one changes few of a model's early choices
};

TinyGguf tiny_adapter(const TinyAdapterShape& shape = {});

}  // namespace knap::test
