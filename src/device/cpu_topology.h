// How many threads this process should compute with.
#pragma once

#include <filesystem>
#include <set>

namespace knap {

// The physical cores that this process may use: its affinity and its cgroup's CPU quota respected;
// at least 1.
int default_thread_count();

// The parts of default_thread_count(), over a system tree that tests can build.
// Logical CPUs that share a core count once.
int count_physical_cores(const std::set<int>& allowed_cpus, const std::filesystem::path& sys_cpu);
// Whole CPUs that the cgroup named in `proc_self_cgroup` may use, rounded up; 0 when it sets no
// limit. Both versions of cgroups, and every ancestor up to the mount, are looked at: the tightest
// limit holds.
int cgroup_cpu_limit(const std::filesystem::path& proc_self_cgroup,
                     const std::filesystem::path& cgroup_mount);

}  // namespace knap
