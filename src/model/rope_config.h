// Turns the rope fields of a file into the parameters of ggml_rope_ext.
#pragma once

#include "model/config.h"

namespace knap {

class ConfigReader;

// Computes the same as libllama from the same fields, so that both rotate alike. `head_dim` and
// `n_ctx_train` are the model's. Throws knap::Error for what knap does not support: longrope,
// sections, partial rotation.
RopeConfig read_rope_config(const ConfigReader& reader,
                            RopePairing pairing,
                            int head_dim,
                            int n_ctx_train);

}  // namespace knap
