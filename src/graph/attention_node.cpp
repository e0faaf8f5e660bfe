#include "graph/attention_node.h"

#include <algorithm>

#include "graph/attention_mask.h"
#include "kernels/attention/attention.h"

namespace knap {
namespace {

int count_chunks(int n_kv) {
    return (n_kv + kAttentionChunk - 1) / kAttentionChunk;
}

ggml_tensor* source_of(const ggml_tensor* node, AttentionSource source) {
    return node->src[static_cast<std::size_t>(source)];
}

template <typename Number>
const Number* numbers_of(const ggml_tensor* source) {
    return static_cast<const Number*>(source->data);
}

// Memory is mostly read in its own order, so the rows that follow are probably next.
NextRows next_rows(const KvTensors& cached, int kv_head, const Stretch& stretch) {
    const int end = stretch.row + stretch.count;
    return {.keys = cached_row<const std::byte>(cached.keys, kv_head, end),
            .values = cached_row<const std::byte>(cached.values, kv_head, end),
            .bytes = static_cast<std::ptrdiff_t>(cached.keys->nb[1]) * stretch.count};
}

}  // namespace

int count_chunks(const AttentionBlock& block, bool moves) {
    const int n_slack = moves ? kAttentionChunk - kRunStep : 0;
    return count_chunks(block.n_sinks) + count_chunks(block.n_recent() + n_slack);
}

AttentionNode::AttentionNode(const ggml_tensor* node, const ModelConfig& model_config)
    : config(model_config),
      queries(numbers_of<float>(source_of(node, AttentionSource::queries))),
      mask(numbers_of<std::uint16_t>(source_of(node, AttentionSource::mask))),
      cached{.keys = source_of(node, AttentionSource::cached_keys),
             .values = source_of(node, AttentionSource::cached_values),
             .key_scales = source_of(node, AttentionSource::key_scales),
             .value_scales = source_of(node, AttentionSource::value_scales)},
      block{.n_rows = static_cast<int>(source_of(node, AttentionSource::mask)->ne[1]),
            .n_kv = static_cast<int>(source_of(node, AttentionSource::mask)->ne[0])} {
    if (const ggml_tensor* runs = source_of(node, AttentionSource::runs)) {
        block.n_sinks = numbers_of<std::int32_t>(runs)[0];
        block.recent_row = numbers_of<std::int32_t>(runs)[1];
        moves = true;
    }
    if (const ggml_tensor* paths = source_of(node, AttentionSource::tree)) {
        tree.emplace(std::span(numbers_of<std::int32_t>(paths),
                               static_cast<std::size_t>(ggml_nelements(paths))));
    }
}

std::ptrdiff_t AttentionNode::column_offset(int kv_head, int column) const {
    const int group = config.heads_per_kv();
    const int head = kv_head * group + column % group;
    return (std::ptrdiff_t{column / group} * config.n_heads + head) * config.head_dim;
}

Stretch AttentionNode::stretch(int chunk) const {
    const int n_before = count_chunks(block.n_sinks);
    if (chunk < n_before) {
        const int row = chunk * kAttentionChunk;
        return {row, row, std::min(kAttentionChunk, block.n_sinks - row)};
    }
    const int first = (block.recent_row / kAttentionChunk + chunk - n_before) * kAttentionChunk;
    const int begin = std::max(first, block.recent_row);
    const int end = std::min(first + kAttentionChunk, block.recent_row + block.n_recent());
    return {block.n_sinks + begin - block.recent_row, begin, std::max(0, end - begin)};
}

bool AttentionNode::sees(int row, const Stretch& stretch) const {
    if (tree) {
        return tree->n_seen(row) > stretch.row;
    }
    const std::uint16_t* bits = row_mask(row, stretch);
    return std::any_of(bits, bits + stretch.count,
                       [](std::uint16_t number) { return number != kHiddenBits; });
}

ChunkRows AttentionNode::rows(int kv_head, const Stretch& stretch) const {
    using Half = const std::uint16_t;
    const int row = stretch.row;
    if (cached.key_scales == nullptr) {
        return HalfRows{.keys = cached_row<Half>(cached.keys, kv_head, row),
                        .values = cached_row<Half>(cached.values, kv_head, row),
                        .next = next_rows(cached, kv_head, stretch)};
    }
    return Int8Rows{.keys = cached_row<const std::uint8_t>(cached.keys, kv_head, row),
                    .key_scales = cached_row<Half>(cached.key_scales, kv_head, row),
                    .values = cached_row<const std::int8_t>(cached.values, kv_head, row),
                    .value_scales = cached_row<Half>(cached.value_scales, kv_head, row),
                    .next = next_rows(cached, kv_head, stretch)};
}

}  // namespace knap
