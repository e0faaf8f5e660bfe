// Chooses the ggml type of each matrix from the name that a user types: "Q4_0", "Q4_K_M",
// "MXFP4_MOE" (as gpt-oss is published: experts in MXFP4, the other matrices in Q8_0).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ggml.h"

namespace knap {

struct WeightRecipe {
    ggml_type base;                    // most matrices
    ggml_type boosted;                 // those that get more bits in a mixture; otherwise `base`
    ggml_type embedding;               // token_embd, which is also a tied head
    ggml_type head;                    // output
    std::optional<ggml_type> experts;  // their matrices; empty: those of an MLP
    std::uint32_t file_type;           // general.file_type, numbered as in llama.cpp

    // For attn_v and ffn_down, which suffer most from coarse weights. Like llama.cpp, a mixture
    // boosts them in the first and last eighth of the layers and in every third layer between:
    // about half of them.
    ggml_type sensitive_type(int layer, int n_layers) const;
};

// Names are case-insensitive. An empty `head_type` follows `type`. Throws knap::Error for an
// unknown type, or one that ggml quantises only with an importance matrix.
WeightRecipe parse_weight_recipe(std::string_view type,
                                 std::string_view head_type,
                                 bool has_tied_head);

std::string weight_type_names();  // "F32, F16, ..."

}  // namespace knap
