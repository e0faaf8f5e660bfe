#include "support/fake_constraint.h"

#include "sampling/noise.h"

namespace knap::test {

FakeConstraint::Fits random_constraint(std::uint64_t seed, double share) {
    return [=](const std::vector<Token>& text, Token token) {
        std::uint64_t state = seed;
        for (const Token one : text) {
            state = state * 1000003 + static_cast<std::uint64_t>(one) + 1;
        }
        return token == 0 || PositionNoise(state, 0).uniform(token) >= share;
    };
}

}  // namespace knap::test
