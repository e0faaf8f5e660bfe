#include "cli/flags/scheduling.h"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <sched.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/quoted.h"
#include "cli/exit_code.h"

namespace knap {
namespace {

// The nice values of llama.cpp.
constexpr std::array<int, 5> kNiceValues{5, 0, -5, -10, -20};

[[noreturn]] void refuse_mask(const std::string& mask) {
    fail_usage(
        "--cpu-mask: expected a hexadecimal mask with a bit set, such as 0x5 for CPUs 0 and 2, "
        "found ",
        in_quotes(mask));
}

}  // namespace

void restrict_to_cpus(const std::string& mask) {
    std::string_view digits = mask;
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
        digits.remove_prefix(2);
    }
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    std::size_t bit = 0;
    for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, bit += 4) {
        if (std::isxdigit(static_cast<unsigned char>(*digit)) == 0 || bit + 4 > CPU_SETSIZE) {
            refuse_mask(mask);
        }
        const int value = std::stoi(std::string(1, *digit), nullptr, 16);
        for (std::size_t i = 0; i < 4; ++i) {
            if ((value >> i & 1) != 0) {
                CPU_SET(bit + i, &cpus);
            }
        }
    }
    if (CPU_COUNT(&cpus) == 0) {
        refuse_mask(mask);
    }
    if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) {
        fail("--cpu-mask: expected a CPU that this process may use, found none in ", mask, " (",
             std::strerror(errno), ")");
    }
}

void set_priority(int priority) {
    const int nice = kNiceValues.at(static_cast<std::size_t>(priority - kLowestPriority));
    if (setpriority(PRIO_PROCESS, 0, nice) != 0) {
        fail("--prio: expected permission to set the priority to ", priority, ", found none (",
             std::strerror(errno), ")");
    }
}

}  // namespace knap
