#include "graph/kernel_heads.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "graph/custom_node.h"
#include "graph/head_rows.h"

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

class Heads {
  public:
    Heads(const ggml_tensor* node, const ModelConfig& config)
        : node_(node),
          config_(config),
          cached_{node->src[Source::cached_keys], node->src[Source::cached_values],
                  node->src[Source::key_scales], node->src[Source::value_scales]},
          rows_(config, cached_) {}

    // A row's heads are numbered: its queries, its keys, its values.
    int n_per_row() const { return config_.n_heads + 2 * config_.n_kv_heads; }

    void run(std::int64_t row, int head) const {
        const int key = head - config_.n_heads;
        const int value = key - config_.n_kv_heads;
        if (key < 0) {
            rows_.rotate(turns(row), input(Source::queries, row, head), query(row, head));
        } else if (slot(row) < 0) {
            return;  // padding
        } else if (value < 0) {
            rows_.store_key(key, slot(row), turns(row), input(Source::keys, row, key));
        } else {
            rows_.store_value(value, slot(row), input(Source::values, row, value));
        }
    }

  private:
    const float* turns(std::int64_t row) const { return row_of(Source::rope_table, row); }
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
    HeadRows rows_;
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
