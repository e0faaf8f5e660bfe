// A search on a device with its own memory, with streams that stay there and with streams that pass
// through host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/search_rig.h"

namespace knap::test {

enum class Streams {
    carried,    // all of them pass through host memory
    brought,    // the whole model's are sent to the device once
    collected,  // none leaves the device
};

struct DeviceSearch {
    std::vector<ModulePlan> plans{};
    std::vector<double> scores{};
    std::vector<std::vector<Token>> choices{};  // of the final states of the plans
    std::int64_t n_module_rows = 0;
    std::size_t bytes_read = 0;  // by the knapsack only
    bool is_cancelled = false;
};

// Solves a knapsack over the last `n_rows` tokens, with several levels.
DeviceSearch search_on_device(SearchRig& rig, int n_rows, Streams streams);
// The same over a text whose rows are in `cache`.
DeviceSearch search_on_device(Forward& forward,
                              const Sequence& cache,
                              std::span<const Token> text,
                              int n_rows,
                              Streams streams);

// Expects the same plans, choices and work, and scores that differ only by summing in f32 or
// double.
void expect_same(const DeviceSearch& a, const DeviceSearch& b);

}  // namespace knap::test
