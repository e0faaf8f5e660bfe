// Turns the rope fields of a file into the parameters of ggml_rope_ext.
#pragma once

#include "model/config.h"

namespace knap {

class ConfigReader;
struct Architecture;

// Computes the same as libllama from the same fields, so that both rotate alike. `head_dim` and
// `n_ctx_train` are the model's. Throws knap::Error for what only some architectures support, if
// this one does not list it (Architecture::fields): sections, partial rotation, longrope.
RopeConfig read_rope_config(const ConfigReader& reader,
                            const Architecture& architecture,
                            int head_dim,
                            int n_ctx_train);

}  // namespace knap
