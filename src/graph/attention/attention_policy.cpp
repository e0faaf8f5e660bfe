#include "graph/attention/attention_policy.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "device/backend.h"
#include "kernels/attention/attention.h"

namespace knap {
namespace {

// Each path with a cache layout that it reads.
struct PathEntry {
    AttentionPath path;
    KvLayout layout;
    std::string_view name;
};
constexpr PathEntry kPaths[] = {
    {AttentionPath::kernel, KvLayout::tiled_keys, "kernel"},
    {AttentionPath::kernel, KvLayout::tiled_int8, "kernel"},
    {AttentionPath::folded, KvLayout::transposed_values, "folded"},
    {AttentionPath::flash, KvLayout::rows, "flash"},
};

template <typename Matches>
const PathEntry& find_path(Matches matches) {
    const auto* entry = std::find_if(std::begin(kPaths), std::end(kPaths), matches);
    KNAP_ASSERT(entry != std::end(kPaths), "every path and every layout is in the table");
    return *entry;
}

// Whether the device computes ggml's flash attention over heads of this size, with this soft cap.
bool has_flash_attention(const ModelConfig& config, const Backend& backend) {
    constexpr std::int64_t kRows = 256;
    const ggml_context_ptr context(ggml_init({8 * ggml_tensor_overhead(), nullptr, true}));
    ggml_context* ctx = context.get();
    const auto new_rows = [&](ggml_type type, std::int64_t n_rows, int n_heads) {
        return ggml_new_tensor_3d(ctx, type, config.head_dim, n_rows, n_heads);
    };
    ggml_tensor* out = ggml_flash_attn_ext(ctx, new_rows(GGML_TYPE_F32, 1, config.n_heads),
                                           new_rows(GGML_TYPE_F16, kRows, config.n_kv_heads),
                                           new_rows(GGML_TYPE_F16, kRows, config.n_kv_heads),
                                           ggml_new_tensor_2d(ctx, GGML_TYPE_F16, kRows, 1),
                                           config.attention_scale, 0.0f, config.soft_cap);
    return backend.supports(out);
}

// Whether our kernel can run a model with such a cache on this machine and is worth using.
bool has_kernel(const ModelConfig& config, CacheType type_k, CacheType type_v) {
    return has_fast_attention() && type_k == type_v && type_k != CacheType::f32 &&
           config.head_dim % kKeyTile == 0 && config.head_dim <= kMaxAttentionHeadDim;
}

AttentionPath choose_path(const ModelConfig& config,
                          const RuntimeConfig& runtime,
                          const Backend& backend) {
    if (!backend.is_host()) {
        const bool is_wanted = runtime.flash_attention != FlashAttention::off;
        return is_wanted && has_flash_attention(config, backend) ? AttentionPath::flash
                                                                 : AttentionPath::folded;
    }
    if (runtime.flash_attention == FlashAttention::on) {
        return AttentionPath::flash;
    }
    return runtime.kernels != Kernels::ggml &&
                   has_kernel(config, runtime.cache_type_k, runtime.cache_type_v)
               ? AttentionPath::kernel
               : AttentionPath::folded;
}

}  // namespace

std::string_view to_string(AttentionPath path) {
    return find_path([&](const PathEntry& entry) { return entry.path == path; }).name;
}

AttentionPolicy choose_attention(const ModelConfig& config,
                                 const RuntimeConfig& runtime,
                                 const Backend& backend,
                                 int exact_rows) {
    const bool is_exact = runtime.exact && !backend.is_host() && exact_rows > 1;
    return {.path = choose_path(config, runtime, backend), .exact_rows = is_exact ? exact_rows : 0};
}

KvLayout layout_for(AttentionPath path, CacheType type) {
    if (path == AttentionPath::kernel && type == CacheType::q8_0) {
        return KvLayout::tiled_int8;
    }
    return find_path([&](const PathEntry& entry) { return entry.path == path; }).layout;
}

AttentionPath path_for(KvLayout layout) {
    return find_path([&](const PathEntry& entry) { return entry.layout == layout; }).path;
}

DeviceLimits attention_limits(const AttentionPolicy& policy, const Backend& backend) {
    const bool is_flash = policy.path == AttentionPath::flash;
    const bool is_limited = is_flash || !backend.is_host();
    const int exact_rows = is_flash ? std::max(1, policy.exact_rows) : 1;
    const bool is_kernel = policy.path == AttentionPath::kernel;
    return {.exact_rows = is_limited ? exact_rows : kMaxUbatch,
            .has_exact_trees = is_kernel,
            .page_rows = is_kernel ? kAttentionChunk : 0,
            .attention = to_string(policy.path)};
}

}  // namespace knap
