// What the gate of an MLP goes through before it multiplies the other half.
#pragma once

#include <cstdint>

namespace knap {

enum class Activation : std::uint8_t {
    silu,
    gelu,  // with tanh, as Gemma has it
};

}  // namespace knap
