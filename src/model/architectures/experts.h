// Layers whose MLP is a number of experts, of which a router chooses some for each row.
#pragma once

#include <string_view>

#include "model/config.h"
#include "model/tensor_table.h"

namespace knap {

class ConfigReader;

inline constexpr std::string_view kExpertCount = "expert_count";

// How the experts of an architecture work, and where its files say so.
struct ExpertRules {
    enum class Length {
        own,           // in a field of its own
        own_or_share,  // there, or feed_forward_length shared out to the experts that a row uses
        feed_forward,  // in feed_forward_length
    };
    Gating gating = Gating::softmax;
    bool normalises = true;
    Length length = Length::feed_forward;
    bool may_have_shared = false;  // an expert that every row uses
    bool may_be_dense = false;     // files without experts
};

// Gives every layer the experts of the file, if it has any. The rest of `config` is known.
void read_experts(const ConfigReader& reader, const ExpertRules& rules, ModelConfig& config);

// Adds the tensors of experts, in place of those of the MLP in layers that have experts. With
// `has_biases` the router and all matrices have one.
void add_experts(TensorTable& table, bool has_biases = false);
// Adds those of an expert that every row uses.
void add_shared_expert(TensorTable& table);

}  // namespace knap
