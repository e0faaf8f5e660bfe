// A search on a device that has memory of its own, with streams that stay there and with streams
// that are carried over the program's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/search_rig.h"

namespace knap::test {

enum class Streams {
    carried,    // all of them
    brought,    // the target's go to the device once
    collected,  // none leaves it
};

struct DeviceSearch {
    std::vector<ModulePlan> plans{};
    std::vector<double> scores{};
    std::vector<std::vector<Token>> choices{};  // of the states that the plans end in
    std::int64_t n_module_rows = 0;
    std::size_t bytes_read = 0;  // by the knapsack alone
    bool is_cancelled = false;
};

// A knapsack over the last `n_rows` tokens, at several levels.
DeviceSearch search_on_device(SearchRig& rig, int n_rows, Streams streams);

// Plans, choices and work are the same, and scores as near as their sums in f32 and double are.
void expect_same(const DeviceSearch& a, const DeviceSearch& b);

}  // namespace knap::test
