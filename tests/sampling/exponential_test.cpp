#include "sampling/exponential.h"

#include <cmath>

#include <gtest/gtest.h>

namespace knap::exponential_test {
namespace {

TEST(ApproximateExp, IsWithinItsErrorOfStdExp) {
    for (int i = 0; i <= 870'000; ++i) {
        const float x = -static_cast<float>(i) * 1e-4f;
        const double exact = std::exp(static_cast<double>(x));
        ASSERT_NEAR(approximate_exp(x) / exact, 1.0, 1e-5) << x;
    }
}

}  // namespace
}  // namespace knap::exponential_test
