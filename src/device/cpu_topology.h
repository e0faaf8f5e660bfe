// How many threads this process should use.
#pragma once

#include <filesystem>
#include <set>

namespace knap {

// The number of physical cores that this process may use, given its CPU affinity and its cgroup's
// CPU quota; at least 1.
int default_thread_count();

// The parts of default_thread_count(), over a system tree that tests can build.

// Logical CPUs that share a core count once.
int count_physical_cores(const std::set<int>& allowed_cpus, const std::filesystem::path& sys_cpu);
// The CPUs that the cgroup named in `proc_self_cgroup` may use, rounded up; 0 without a limit.
// Checks both cgroup versions and every ancestor up to the mount; the tightest limit applies.
int cgroup_cpu_limit(const std::filesystem::path& proc_self_cgroup,
                     const std::filesystem::path& cgroup_mount);

}  // namespace knap
