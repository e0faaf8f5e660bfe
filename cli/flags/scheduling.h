// Where and how eagerly the system runs this process. Both take effect for the calling thread and
// for all threads that are started later, so they come before any other.
#pragma once

#include <string>

namespace knap {

// `mask` is hexadecimal, as of llama.cpp and taskset: bit i stands for CPU i. Throws UsageError
// when it is none, knap::Error when the machine has no such CPU for this process.
void restrict_to_cpus(const std::string& mask);

inline constexpr int kLowestPriority = -1;
inline constexpr int kHighestPriority = 3;
// From low (-1) over normal (0) to highest (3), as llama.cpp numbers them. Throws knap::Error when
// the system does not permit it.
void set_priority(int priority);

}  // namespace knap
