// How many threads this process should use.
#pragma once

#include <filesystem>
#include <set>

namespace knap {

// The number of physical cores that this process may use, given its CPU affinity and its cgroup's
// CPU quota; at least 1. Where there are performance and efficiency cores, only the former count:
// the threads of a pass wait for each other, so it is as fast as its slowest thread.
int default_thread_count();

// The parts of default_thread_count(), over a system tree that tests can build.

// Those of `allowed_cpus` that are performance cores, if the machine tells them from others and one
// of them is allowed; else all. `devices` is /sys/devices, where hybrid machines list the CPUs of
// each kind.
std::set<int> performance_cpus(const std::set<int>& allowed_cpus,
                               const std::filesystem::path& devices);
// Logical CPUs that share a core count once.
int count_physical_cores(const std::set<int>& allowed_cpus, const std::filesystem::path& sys_cpu);
// The CPUs that the cgroup named in `proc_self_cgroup` may use, rounded up; 0 without a limit.
// Checks both cgroup versions and every ancestor up to the mount; the tightest limit applies.
int cgroup_cpu_limit(const std::filesystem::path& proc_self_cgroup,
                     const std::filesystem::path& cgroup_mount);

}  // namespace knap
