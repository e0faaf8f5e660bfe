// --cpu-mask and --prio, as the process itself sees them.
#include <sched.h>

#include "cli/command.h"
#include "support/tiny_model.h"

namespace knap::scheduling_test {
namespace {

int lowest_cpu() {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    sched_getaffinity(0, sizeof cpus, &cpus);
    int cpu = 0;
    while (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &cpus) == 0) {
        ++cpu;
    }
    return cpu;
}

// A mask with the bit of one CPU.
std::string mask_of(int cpu) {
    return std::string(1, "1248"[cpu % 4]) + std::string(static_cast<std::size_t>(cpu / 4), '0');
}

Words short_run(const Words& flags) {
    return Words{"run", "-m", tiny_model().string(), "-p", "a", "-n", "2", "--raw", "-v"} + flags;
}

TEST(CpuMask, DecidesHowManyThreadsThereAre) {
    for (const char* prefix : {"", "0x"}) {
        const auto result = run_knap(short_run({"--cpu-mask", prefix + mask_of(lowest_cpu())}));
        EXPECT_EQ(result.exit_code, 0) << result.error;
        EXPECT_THAT(result.error, testing::HasSubstr(", 1 threads"));
    }
}

TEST(CpuMask, NeedsACpuOfTheMachine) {
    const auto result = run_knap(short_run({"--cpu-mask", mask_of(CPU_SETSIZE - 1)}));
    expect_error(result, 1,
                 "--cpu-mask: expected a CPU that this process may use, found none in 8");
}

TEST(Priority, MayBeLowered) {
    for (const char* priority : {"-1", "0"}) {
        const auto result = run_knap(short_run({"--prio", priority}));
        EXPECT_EQ(result.exit_code, 0) << result.error;
    }
}

}  // namespace
}  // namespace knap::scheduling_test
