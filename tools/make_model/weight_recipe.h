// Which ggml type each matrix of a model gets, from the names that people type: "Q4_0", "BF16",
// "Q4_K_M".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ggml.h"

namespace knap {

struct WeightRecipe {
    ggml_type base;     // most matrices
    ggml_type boosted;  // those that a mixture gives more bits; `base` when the type is no mixture
    ggml_type embedding;      // token_embd, which is the head as well when that is tied
    ggml_type head;           // output
    std::uint32_t file_type;  // general.file_type, as llama.cpp numbers them

    // For attn_v and ffn_down, which suffer most from coarse weights. A mixture boosts them in the
    // first and last eighth of the layers and in every third layer between: about half of them, as
    // llama.cpp does.
    ggml_type sensitive_type(int layer, int n_layers) const;
};

// Names are matched without regard to case. An empty `head_type` follows `type`. Throws knap::Error
// for a type that is not known, or that ggml quantises only with an importance matrix.
WeightRecipe parse_weight_recipe(std::string_view type,
                                 std::string_view head_type,
                                 bool has_tied_head);

std::string weight_type_names();  // "F32, F16, ..."

}  // namespace knap
