#include "graph/kernel_heads.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "graph/custom_node.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/heads.h"

namespace knap {
namespace {

// Sources of a node, in this order.
struct Source {
    enum : int {
        queries,
        keys,
        values,
        rope_table,
        slots,
        cached_keys,
        cached_values,
        key_scales,
        value_scales,
        count
    };
};

const HeadsKernel& heads_kernel() {
    return heads_kernels().front();
}

class Heads {
  public:
    Heads(const ggml_tensor* node, const ModelConfig& config)
        : node_(node),
          config_(config),
          cached_{node->src[Source::cached_keys], node->src[Source::cached_values],
                  node->src[Source::key_scales], node->src[Source::value_scales]} {}

    // A row's heads are numbered: its queries, its keys, its values.
    int n_per_row() const { return config_.n_heads + 2 * config_.n_kv_heads; }

    void run(std::int64_t row, int head) const {
        const int key = head - config_.n_heads;
        const int value = key - config_.n_kv_heads;
        if (key < 0) {
            rotate(row, input(Source::queries, row, head), query(row, head));
        } else if (slot(row) < 0) {
            return;  // padding
        } else if (value < 0) {
            store_key(row, key);
        } else {
            store_value(row, value);
        }
    }

  private:
    void rotate(std::int64_t row, const float* x, float* out) const {
        const auto rotate_head = config_.rope.pairing == RopePairing::halves
                                     ? heads_kernel().rotate_halves
                                     : heads_kernel().rotate_neighbours;
        rotate_head(config_.head_dim, config_.rope.n_rot, row_of(Source::rope_table, row), x, out);
    }

    void store_key(std::int64_t row, int head) const {
        std::array<float, kMaxAttentionHeadDim> key;
        rotate(row, input(Source::keys, row, head), key.data());
        const int lane = slot(row) % kKeyTile;
        const int first = slot(row) - lane;
        if (!is_int8()) {
            heads_kernel().store_key(config_.head_dim, key.data(), lane,
                                     cached_row<std::uint16_t>(cached_.keys, head, first));
            return;
        }
        *cached_row<std::uint16_t>(cached_.key_scales, head, slot(row)) =
            heads_kernel().store_int8_key(config_.head_dim, key.data(), lane,
                                          cached_row<std::uint8_t>(cached_.keys, head, first));
    }

    void store_value(std::int64_t row, int head) const {
        const float* value = input(Source::values, row, head);
        if (!is_int8()) {
            heads_kernel().store_value(config_.head_dim, value,
                                       cached_row<std::uint16_t>(cached_.values, head, slot(row)));
            return;
        }
        const int lane = slot(row) % kValueTile;
        *cached_row<std::uint16_t>(cached_.value_scales, head, slot(row)) =
            heads_kernel().store_int8_value(
                config_.head_dim, value, lane,
                cached_row<std::int8_t>(cached_.values, head, slot(row) - lane));
    }

    bool is_int8() const { return cached_.key_scales != nullptr; }
    const float* row_of(int source, std::int64_t row) const {
        return float_row(node_->src[source], row);
    }
    const float* input(int source, std::int64_t row, int head) const {
        return row_of(source, row) + std::ptrdiff_t{head} * config_.head_dim;
    }
    float* query(std::int64_t row, int head) const {
        return static_cast<float*>(node_->data) + (row * config_.n_heads + head) * config_.head_dim;
    }
    std::int32_t slot(std::int64_t row) const {
        return static_cast<const std::int32_t*>(node_->src[Source::slots]->data)[row];
    }

    const ggml_tensor* node_;
    const ModelConfig& config_;
    KvTensors cached_;
};

// Each thread takes a contiguous range of all rows' heads.
void compute_heads(ggml_tensor* node, int thread, int n_threads, void* userdata) {
    const Heads heads(node, *static_cast<const ModelConfig*>(userdata));
    const std::int64_t n_all = node->ne[2] * heads.n_per_row();
    const ThreadShare share(n_all, thread, n_threads);
    for (std::int64_t i = share.begin; i < share.end; ++i) {
        heads.run(i / heads.n_per_row(), static_cast<int>(i % heads.n_per_row()));
    }
}

bool has_rows(const ggml_tensor* rows, std::int64_t n_channels, std::int64_t n_rows) {
    return rows->type == GGML_TYPE_F32 && rows->ne[0] == n_channels && rows->ne[1] == n_rows &&
           rows->nb[0] == sizeof(float);
}

}  // namespace

ggml_tensor* build_kernel_heads(ggml_context* ctx,
                                const ModelConfig& config,
                                const GgmlKvStore& cache,
                                int layer,
                                const RowHeads& heads,
                                ggml_tensor* rope_table,
                                const KvSlots& slots) {
    const std::int64_t n_rows = heads.queries->ne[1];
    KNAP_ASSERT(has_rows(heads.queries, config.n_embd_q(), n_rows) &&
                    has_rows(heads.keys, config.n_embd_kv(), n_rows) &&
                    has_rows(heads.values, config.n_embd_kv(), n_rows) &&
                    has_rows(rope_table, config.rope.n_rot, n_rows),
                "the kernel's preconditions");
    const KvTensors cached = cache.tensors(layer);
    std::array<ggml_tensor*, Source::count> sources{
        heads.queries, heads.keys,    heads.values,      rope_table,         slots.rows,
        cached.keys,   cached.values, cached.key_scales, cached.value_scales};
    auto* userdata = const_cast<ModelConfig*>(&config);  // ggml passes it back as it is
    return ggml_custom_4d(ctx, GGML_TYPE_F32, config.head_dim, config.n_heads, n_rows, 1,
                          sources.data(), sources.size(), compute_heads, GGML_N_TASKS_MAX,
                          userdata);
}

}  // namespace knap
