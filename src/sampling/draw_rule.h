// How tokens are drawn from rows of logits as they are, without bias, penalties or a constraint:
// plain data, for devices that draw by themselves.
#pragma once

#include <cstdint>

namespace knap {

// As in SamplingOptions. At temperature 0 the choice is greedy, whatever the rest says.
struct DrawRule {
    float temperature = 0;
    int top_k = 0;
    float top_p = 1;
    float min_p = 0;
    std::uint64_t seed = 0;

    bool is_greedy() const { return temperature <= 0; }
};

}  // namespace knap
