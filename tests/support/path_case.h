// A model shape and an attention path: what tests of passes go through.
#pragma once

#include <ostream>

#include <gtest/gtest.h>

#include "graph/attention.h"

namespace knap::test {

struct PathCase {
    const char* shape;
    AttentionPath path;
};

inline void PrintTo(const PathCase& c, std::ostream* out) {
    *out << c.shape << '/' << to_string(c.path);
}

// Grouped heads, heads with norms, one query head per KV head; every path.
inline auto all_path_cases() {
    return ::testing::Values(
        PathCase{"tiny-llama", AttentionPath::kernel},
        PathCase{"tiny-llama", AttentionPath::folded}, PathCase{"tiny-llama", AttentionPath::flash},
        PathCase{"tiny-qwen3", AttentionPath::kernel},
        PathCase{"tiny-qwen3", AttentionPath::folded}, PathCase{"tiny-qwen3", AttentionPath::flash},
        PathCase{"tiny-mha", AttentionPath::kernel}, PathCase{"tiny-mha", AttentionPath::folded},
        PathCase{"tiny-mha", AttentionPath::flash});
}

}  // namespace knap::test
