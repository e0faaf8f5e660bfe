#include "cpu/layer_heads.h"

#include <algorithm>
#include <array>

#include "kernels/attention/attention.h"
#include "kernels/row_math.h"

namespace knap {

LayerHeads::LayerHeads(const ModelConfig& config,
                       int layer,
                       const CpuLayer& weights,
                       const KvTensors& cached,
                       const CpuRequest& request)
    : config_(config),
      spec_(config.layer(layer)),
      weights_(weights),
      request_(request),
      rows_(config, cached) {}

void LayerHeads::give_query(int row, float* x, float* out) const {
    if (weights_.q_norm != nullptr && config_.head_norm == HeadNorm::per_head) {
        norm_head(weights_.q_norm, x);
    }
    rotate_query(row, x, out);
    if (weights_.q_norm != nullptr && config_.head_norm == HeadNorm::after_rotation) {
        norm_head(weights_.q_norm, out);
    }
}

void LayerHeads::store_key(int head, int row, float* x) const {
    if (weights_.k_norm != nullptr && config_.head_norm == HeadNorm::after_rotation) {
        std::array<float, kMaxAttentionHeadDim> rotated;
        rows_.rotate(turns(row), x, rotated.data());
        norm_head(weights_.k_norm, rotated.data());
        rows_.store_key(head, stored(row), request_.unit_pairs.data(), rotated.data());
        return;
    }
    if (weights_.k_norm != nullptr) {
        norm_head(weights_.k_norm, x);
    }
    rows_.store_key(head, stored(row), turns(row), x);
}

void LayerHeads::store_value(int head, int row, const float* x) const {
    rows_.store_value(head, stored(row), x);
}

void LayerHeads::give_row(int row, float* queries, float* keys) const {
    if (queries != nullptr) {
        norm_row(queries, weights_.q_norm, config_.n_embd_q(), config_.rms_eps, queries);
        for (int head = 0; head < config_.n_heads; ++head) {
            float* query = queries + static_cast<std::ptrdiff_t>(head) * config_.head_dim;
            std::array<float, kMaxAttentionHeadDim> x;
            std::copy_n(query, config_.head_dim, x.data());
            rotate_query(row, x.data(), query);
        }
    }
    norm_row(keys, weights_.k_norm, config_.n_embd_kv(), config_.rms_eps, keys);
    for (int head = 0; head < config_.n_kv_heads; ++head) {
        rows_.store_key(head, stored(row), turns(row),
                        keys + static_cast<std::ptrdiff_t>(head) * config_.head_dim);
    }
}

const float* LayerHeads::turns(int row) const {
    const auto i = static_cast<std::size_t>(row);
    switch (spec_.rotation) {
        case Rotation::global:
            return request_.turns[i];
        case Rotation::local:
            return request_.local_turns[i];
        case Rotation::none:
            break;
    }
    return request_.unit_pairs.data();
}

float LayerHeads::query_scale(int row) const {
    return request_.query_scales.empty() ? 1.0f
                                         : request_.query_scales[static_cast<std::size_t>(row)];
}

void LayerHeads::rotate_query(int row, const float* x, float* out) const {
    rows_.rotate(turns(row), x, out);
    scale_row(query_scale(row), config_.head_dim, out);
}

void LayerHeads::norm_head(const float* norm, float* x) const {
    norm_row(x, norm, config_.head_dim, config_.rms_eps, x);
}

}  // namespace knap
