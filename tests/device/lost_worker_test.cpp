// When a worker counts as lost, which ends the process: each case runs in its own process. The CPU
// stands in for a worker's device.
#include "device/lost_worker.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include "device/device_list.h"

namespace knap::lost_worker_test {
namespace {

using testing::ExitedWithCode;

void pause(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// Starts watching a worker and returns its pulse.
WorkerPulse* watched(int patience_s) {
    watch_worker("10.0.0.5:50052", {cpu_device()}, patience_s);
    return pulse_of(cpu_device());
}

class LostWorkerDeathTest : public testing::Test {
  protected:
    LostWorkerDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(LostWorkerDeathTest, LostWorkerEndsTheProcessThatWaitsForIt) {
    const auto wait_in_vain = [] {
        const WorkerWait wait(watched(1));
        pause(60000);
    };
    EXPECT_EXIT(
        wait_in_vain(), ExitedWithCode(1),
        "^knap: error: worker 10.0.0.5:50052: expected an answer within 1 s, found none\n$");
}

TEST_F(LostWorkerDeathTest, WorkerThatAnswersNowAndThenIsNotLost) {
    const auto wait_often = [] {
        WorkerPulse* pulse = watched(2);
        for (int i = 0; i < 20; ++i) {
            const WorkerWait wait(pulse);
            pause(200);
        }
        std::_Exit(0);
    };
    EXPECT_EXIT(wait_often(), ExitedWithCode(0), "^$");
}

TEST_F(LostWorkerDeathTest, IdleWorkerIsNotLost) {
    const auto wait_once = [] {
        { const WorkerWait wait(watched(1)); }
        pause(3000);
        std::_Exit(0);
    };
    EXPECT_EXIT(wait_once(), ExitedWithCode(0), "^$");
}

TEST_F(LostWorkerDeathTest, ZeroPatienceWaitsIndefinitely) {
    const auto wait_long = [] {
        const WorkerWait wait(watched(0));
        pause(3000);
        std::_Exit(0);
    };
    EXPECT_EXIT(wait_long(), ExitedWithCode(0), "^$");
}

TEST(LostWorker, LocalDevicesHaveNoPulse) {
    EXPECT_EQ(pulse_of(cpu_device()), nullptr);
    const WorkerWait wait(nullptr);
}

}  // namespace
}  // namespace knap::lost_worker_test
