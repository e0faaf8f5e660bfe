// Gumbel noise by its definition, for tests that compare draws with it.
#pragma once

#include <cmath>

#include "sampling/noise.h"

namespace knap::test {

// Standard Gumbel: argmax over v of log p(v) + gumbel(v) is a draw from p.
inline double gumbel(const PositionNoise& noise, Token token) {
    return -std::log(-std::log(noise.uniform(token)));
}

}  // namespace knap::test
