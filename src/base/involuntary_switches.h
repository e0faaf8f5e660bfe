// How often the system has taken a core away from this process, because others wanted it: a sign of
// a busy machine.
#pragma once

#include <cstdint>

namespace knap {

// Of all threads since the process began.
std::int64_t involuntary_switches();

}  // namespace knap
