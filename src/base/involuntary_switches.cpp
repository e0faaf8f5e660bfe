#include "base/involuntary_switches.h"

#include <sys/resource.h>

namespace knap {

std::int64_t involuntary_switches() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

}  // namespace knap
