// How a file's rope fields become the parameters of ggml_rope_ext.
#pragma once

#include "model/config.h"

namespace knap {

class ConfigReader;

// Computes what libllama computes from the same fields, so that both rotate alike. `head_dim` and
// `n_ctx_train` are the model's; throws knap::Error for what is not rotated here: longrope,
// sections, partial rotation.
RopeConfig read_rope_config(const ConfigReader& reader,
                            RopePairing pairing,
                            int head_dim,
                            int n_ctx_train);

}  // namespace knap
