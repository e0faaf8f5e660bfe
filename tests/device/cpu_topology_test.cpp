#include "device/cpu_topology.h"

#include <fstream>

#include <gtest/gtest.h>
#include <stdlib.h>

namespace knap::cpu_topology_test {
namespace {

namespace fs = std::filesystem;

class CpuTopology : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "knap-topology-XXXXXX").string();
        root_ = mkdtemp(pattern.data());
    }
    void TearDown() override { fs::remove_all(root_); }

    void write(const fs::path& path, const std::string& text) {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text << '\n';
    }

    fs::path root_;
};

TEST_F(CpuTopology, SiblingsCountOnce) {
    for (const auto& [cpu, siblings] :
         {std::pair{0, "0,2"}, std::pair{1, "1,3"}, std::pair{2, "0,2"}, std::pair{3, "1,3"}}) {
        write("cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", siblings);
    }
    EXPECT_EQ(count_physical_cores({0, 1, 2, 3}, root_), 2);
    EXPECT_EQ(count_physical_cores({0, 2}, root_), 1);
    EXPECT_EQ(count_physical_cores({0, 1}, root_), 2);
}

TEST_F(CpuTopology, CpusWithoutTopologyCountAsCores) {
    EXPECT_EQ(count_physical_cores({4, 5, 6}, root_), 3);
    EXPECT_EQ(count_physical_cores({}, root_), 0);
}

TEST_F(CpuTopology, OnlyPerformanceCoresCountWhereThereAreOthers) {
    const std::set<int> all{0, 1, 2, 3, 4, 5, 6, 7};
    EXPECT_EQ(performance_cpus(all, root_), all) << "one kind of core";
    write("cpu_core/cpus", "0-3,6");
    write("cpu_atom/cpus", "4-5,7");
    EXPECT_EQ(performance_cpus(all, root_), (std::set<int>{0, 1, 2, 3, 6}));
    EXPECT_EQ(performance_cpus({3, 4, 5}, root_), std::set<int>{3});
    EXPECT_EQ(performance_cpus({4, 7}, root_), (std::set<int>{4, 7})) << "no other is allowed";
    write("cpu_core/cpus", "none");
    EXPECT_EQ(performance_cpus(all, root_), all);
}

TEST_F(CpuTopology, TightestCgroupOnThePathApplies) {
    write("self", "0::/user/job");
    write("mount/cpu.max", "max 100000");
    write("mount/user/cpu.max", "250000 100000");
    write("mount/user/job/cpu.max", "800000 100000");
    EXPECT_EQ(cgroup_cpu_limit(root_ / "self", root_ / "mount"), 3) << "2.5 CPUs round up";
}

TEST_F(CpuTopology, VersionOneQuotaIsRead) {
    write("self", "5:cpuset:/x\n4:cpu,cpuacct:/box");
    write("mount/cpu/box/cpu.cfs_quota_us", "100000");
    write("mount/cpu/box/cpu.cfs_period_us", "100000");
    EXPECT_EQ(cgroup_cpu_limit(root_ / "self", root_ / "mount"), 1);
}

TEST_F(CpuTopology, NoQuotaIsNoLimit) {
    write("self", "0::/");
    write("mount/cpu.max", "max 100000");
    EXPECT_EQ(cgroup_cpu_limit(root_ / "self", root_ / "mount"), 0);
    EXPECT_EQ(cgroup_cpu_limit(root_ / "missing", root_ / "mount"), 0);
}

TEST(DefaultThreadCount, IsAtLeastOne) {
    EXPECT_GE(default_thread_count(), 1);
}

}  // namespace
}  // namespace knap::cpu_topology_test
