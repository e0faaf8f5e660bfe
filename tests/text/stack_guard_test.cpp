#include "text/stack_guard.h"

#include <csignal>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

namespace knap::test::stack_guard_test {
namespace {

// As deep as there is stack.
int descend(volatile int depth) {
    volatile char frame[512] = {};
    frame[depth % 512] = 1;
    return depth < 0 ? 0 : descend(depth + 1) + frame[0];
}

void run_on_a_thread(const std::function<void()>& work) {
    std::thread(work).join();
}

class StackGuardDeathTest : public ::testing::Test {
  protected:
    void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(StackGuardDeathTest, AFullStackEndsTheProcessWithOneLine) {
    EXPECT_EXIT(run_on_a_thread([] {
                    const StackGuard guard("too deep");
                    descend(0);
                }),
                testing::ExitedWithCode(1), "^knap: error: too deep\n$");
}

TEST_F(StackGuardDeathTest, OtherThreadsCrashAsBefore) {
    EXPECT_DEATH(run_on_a_thread([] {
                     { const StackGuard guard("too deep"); }
                     descend(0);
                 }),
                 "");
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // which end the process themselves
TEST_F(StackGuardDeathTest, OtherFaultsCrashAsBefore) {
    EXPECT_EXIT(run_on_a_thread([] {
                    const StackGuard guard("too deep");
                    volatile int* volatile nowhere = nullptr;
                    *nowhere = 1;
                }),
                testing::KilledBySignal(SIGSEGV), "");
}
#endif

}  // namespace
}  // namespace knap::test::stack_guard_test
