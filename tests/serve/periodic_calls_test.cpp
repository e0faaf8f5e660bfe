#include "serve/periodic_calls.h"

#include <gtest/gtest.h>

namespace knap::periodic_calls_test {
namespace {

TEST(PeriodicCalls, AreMadeUntilTheyAreDone) {
    PeriodicCalls calls;
    int n_first = 0;
    int n_second = 0;
    calls.add([&] { return ++n_first < 2; });
    calls.add([&] { return ++n_second < 3; });
    for (int i = 0; i < 5; ++i) {
        calls.run();
    }
    EXPECT_EQ(n_first, 2);
    EXPECT_EQ(n_second, 3);
}

}  // namespace
}  // namespace knap::periodic_calls_test
