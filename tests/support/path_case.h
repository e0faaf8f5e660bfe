// A model shape, an attention path and a cache type: the parameters of tests of passes.
#pragma once

#include <ostream>

#include <gtest/gtest.h>

#include "graph/attention/attention_policy.h"
#include "support/loaded_model.h"

namespace knap::test {

struct PathCase {
    const char* shape;
    AttentionPath path;
    CacheType cache = CacheType::f16;

    bool is_int8() const { return cache == CacheType::q8_0; }
    ForwardOptions options(int capacity, int n_ubatch = 512) const {
        return {.capacity = capacity,
                .n_ubatch = n_ubatch,
                .type_k = cache,
                .type_v = cache,
                .path = path};
    }
};

inline void PrintTo(const PathCase& c, std::ostream* out) {
    *out << c.shape << '/' << to_string(c.path) << (c.is_int8() ? "/int8" : "");
}

// Grouped heads, heads with norms, also after they rotate, one query head per KV head; layers with
// windows of their own, with a second rotation or none, with soft caps, with heads that rotate in
// part; attention that sharpens; norms behind modules, scaled modules; experts, also one that every
// row uses; every path, and our int8 cache.
inline auto all_path_cases() {
    return ::testing::Values(
        PathCase{"tiny-llama", AttentionPath::kernel},
        PathCase{"tiny-llama", AttentionPath::kernel, CacheType::q8_0},
        PathCase{"tiny-llama", AttentionPath::folded}, PathCase{"tiny-llama", AttentionPath::flash},
        PathCase{"tiny-qwen3", AttentionPath::kernel},
        PathCase{"tiny-qwen3", AttentionPath::folded}, PathCase{"tiny-qwen3", AttentionPath::flash},
        PathCase{"tiny-mha", AttentionPath::kernel}, PathCase{"tiny-mha", AttentionPath::folded},
        PathCase{"tiny-mha", AttentionPath::flash}, PathCase{"tiny-gemma3", AttentionPath::kernel},
        PathCase{"tiny-gemma3", AttentionPath::folded},
        PathCase{"tiny-gemma2", AttentionPath::kernel, CacheType::q8_0},
        PathCase{"tiny-gemma2", AttentionPath::flash},
        PathCase{"tiny-granite", AttentionPath::kernel},
        PathCase{"tiny-olmo2", AttentionPath::folded},
        PathCase{"tiny-mistral3", AttentionPath::kernel},
        PathCase{"tiny-mistral3", AttentionPath::folded},
        PathCase{"tiny-hunyuan-dense", AttentionPath::kernel},
        PathCase{"tiny-glm4", AttentionPath::kernel, CacheType::q8_0},
        PathCase{"tiny-phi", AttentionPath::kernel}, PathCase{"tiny-phi", AttentionPath::flash},
        PathCase{"tiny-qwen3vl", AttentionPath::folded},
        PathCase{"tiny-smollm3", AttentionPath::kernel},
        PathCase{"tiny-exaone4", AttentionPath::kernel},
        PathCase{"tiny-ernie4.5", AttentionPath::kernel, CacheType::q8_0},
        PathCase{"tiny-seed-oss", AttentionPath::kernel},
        PathCase{"tiny-mixtral", AttentionPath::kernel},
        PathCase{"tiny-mistral3-moe", AttentionPath::folded},
        PathCase{"tiny-qwen3vlmoe", AttentionPath::kernel},
        PathCase{"tiny-granitemoe", AttentionPath::kernel},
        PathCase{"tiny-qwen3moe", AttentionPath::kernel},
        PathCase{"tiny-gpt-oss", AttentionPath::kernel},
        PathCase{"tiny-gpt-oss", AttentionPath::folded},
        PathCase{"tiny-gpt-oss", AttentionPath::flash});
}

}  // namespace knap::test
