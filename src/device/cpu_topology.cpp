#include "device/cpu_topology.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include <sched.h>

#include "base/text.h"

namespace knap {
namespace {

namespace fs = std::filesystem;

std::string read_line(const fs::path& path) {
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    return line;
}

std::set<int> allowed_cpus() {
    // Sized for far more CPUs than any machine has: a smaller set makes the call fail there.
    constexpr int kMaxCpus = 8192;
    cpu_set_t* mask = CPU_ALLOC(kMaxCpus);
    const std::size_t size = CPU_ALLOC_SIZE(kMaxCpus);
    std::set<int> cpus;
    if (mask != nullptr && sched_getaffinity(0, size, mask) == 0) {
        for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
            if (CPU_ISSET_S(cpu, size, mask)) {
                cpus.insert(cpu);
            }
        }
    }
    CPU_FREE(mask);
    return cpus;
}

std::optional<double> quota_v2(const fs::path& group) {
    std::istringstream line(read_line(group / "cpu.max"));  // "max 100000" or "150000 100000"
    double quota = 0;
    double period = 0;
    if (line >> quota >> period && quota > 0 && period > 0) {
        return quota / period;
    }
    return std::nullopt;
}

std::optional<double> quota_v1(const fs::path& group) {
    const double quota = std::atof(read_line(group / "cpu.cfs_quota_us").c_str());  // -1: no limit
    const double period = std::atof(read_line(group / "cpu.cfs_period_us").c_str());
    if (quota > 0 && period > 0) {
        return quota / period;
    }
    return std::nullopt;
}

// The tightest limit on the way from `group` up to and including `mount`.
template <typename Quota>
std::optional<double> tightest(const fs::path& mount, fs::path group, Quota quota) {
    std::optional<double> limit;
    for (;; group = group.parent_path()) {
        if (const auto here = quota(mount / group.relative_path())) {
            limit = std::min(limit.value_or(*here), *here);
        }
        if (group.empty() || group == group.root_path()) {
            return limit;
        }
    }
}

// "0-3,8" as numbers; what is not a list of numbers is left out.
std::set<int> parse_cpu_list(const std::string& text) {
    std::set<int> cpus;
    for (const auto& part : split(text, ',')) {
        std::istringstream range{std::string(part)};
        int first = 0;
        int last = 0;
        if (!(range >> first)) {
            continue;
        }
        char dash = 0;
        if (!(range >> dash >> last)) {
            last = first;
        }
        for (int cpu = first; cpu <= last; ++cpu) {
            cpus.insert(cpu);
        }
    }
    return cpus;
}

bool lists_cpu_controller(const std::string& controllers) {
    return std::ranges::count(split(controllers, ','), "cpu") > 0;
}

}  // namespace

std::set<int> performance_cpus(const std::set<int>& allowed_cpus, const fs::path& devices) {
    const std::set<int> fast = parse_cpu_list(read_line(devices / "cpu_core" / "cpus"));
    std::set<int> both;
    std::ranges::set_intersection(allowed_cpus, fast, std::inserter(both, both.end()));
    return both.empty() ? allowed_cpus : both;
}

int count_physical_cores(const std::set<int>& allowed_cpus, const fs::path& sys_cpu) {
    std::set<std::string> cores;
    for (const int cpu : allowed_cpus) {
        const fs::path topology = sys_cpu / ("cpu" + std::to_string(cpu)) / "topology";
        std::string core = read_line(topology / "thread_siblings_list");
        cores.insert(core.empty() ? "cpu" + std::to_string(cpu) : core);
    }
    return static_cast<int>(cores.size());
}

int cgroup_cpu_limit(const fs::path& proc_self_cgroup, const fs::path& cgroup_mount) {
    std::ifstream in(proc_self_cgroup);
    std::optional<double> limit;
    for (std::string line; std::getline(in, line);) {  // "hierarchy:controllers:/path"
        const auto first = line.find(':');
        const auto second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) {
            continue;
        }
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const fs::path group = line.substr(second + 1);
        std::optional<double> found;
        if (controllers.empty()) {
            found = tightest(cgroup_mount, group, quota_v2);
        } else if (lists_cpu_controller(controllers)) {
            found = tightest(cgroup_mount / "cpu", group, quota_v1);
        }
        if (found) {
            limit = std::min(limit.value_or(*found), *found);
        }
    }
    return limit ? std::max(1, static_cast<int>(std::ceil(*limit))) : 0;
}

int default_thread_count() {
    int n = count_physical_cores(performance_cpus(allowed_cpus(), "/sys/devices"),
                                 "/sys/devices/system/cpu");
    if (n == 0) {
        n = static_cast<int>(std::thread::hardware_concurrency());
    }
    if (const int limit = cgroup_cpu_limit("/proc/self/cgroup", "/sys/fs/cgroup"); limit > 0) {
        n = std::min(n, limit);
    }
    return std::max(n, 1);
}

}  // namespace knap
