// Which experts a row uses, and with which weights.
#pragma once

#include <cstdint>
#include <span>

#include "model/config.h"

namespace knap {

// The smallest sum that weights are divided by, as in libllama: the least normal number of f16.
inline constexpr float kLeastWeightSum = 6.103515625e-5f;

struct ChosenExpert {
    std::int32_t id;
    float weight;
};

// How many experts of a layer rows use if a plan allows `n_allowed` of them; 0: all that the model
// uses.
int n_experts_used(const ExpertSpec& spec, int n_allowed);

// Fills `chosen`, at most as many as there are, from the router's logits of a row [n_experts]: the
// largest first, and of equal ones that of the lowest id. With fewer than the model uses, weights
// are those of a model that uses so many.
void choose_experts(const ExpertSpec& spec,
                    std::span<const float> logits,
                    std::span<ChosenExpert> chosen);

}  // namespace knap
