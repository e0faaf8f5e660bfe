// Adapters for small models, with random weights.
#pragma once

#include "support/tiny_gguf.h"

namespace knap::test {

// As the models of 64 channels want one.
struct TinyAdapterShape {
    int exit_layer = 2;
    int n_embd = 64;
    int n_heads = 4;
    ggml_type type = GGML_TYPE_Q8_0;
    float gain = 2;  // of its attention; a small one leaves most of a model's early choices alone
};

TinyGguf tiny_adapter(const TinyAdapterShape& shape = {});

}  // namespace knap::test
