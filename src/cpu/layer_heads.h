// The heads of a layer on their way from a product to attention: queries and keys are normalised
// where the model does, rotated and scaled; keys and values are stored.
#pragma once

#include "cpu/cpu_pass.h"
#include "graph/head_rows.h"

namespace knap {

class LayerHeads {
  public:
    // All arguments must outlive the object.
    LayerHeads(const ModelConfig& config,
               int layer,
               const CpuLayer& weights,
               const KvTensors& cached,
               const CpuRequest& request);

    // Whether whole rows of queries and keys are normalised: their heads are only given once the
    // row is complete, by give_row().
    bool norms_rows() const {
        return weights_.q_norm != nullptr && config_.head_norm == HeadNorm::whole_row;
    }

    // x [head_dim], which may be changed; out [head_dim].
    void give_query(int row, float* x, float* out) const;
    void store_key(int head, int row, float* x) const;
    void store_value(int head, int row, const float* x) const;
    // queries [n_embd_q] in place, or null: they are not wanted; keys [n_embd_kv], which are
    // changed.
    void give_row(int row, float* queries, float* keys) const;

  private:
    const float* turns(int row) const;
    float query_scale(int row) const;
    int stored(int row) const { return request_.stored[static_cast<std::size_t>(row)]; }
    void rotate_query(int row, const float* x, float* out) const;
    void norm_head(const float* norm, float* x) const;

    const ModelConfig& config_;
    const LayerSpec& spec_;
    const CpuLayer& weights_;
    const CpuRequest& request_;
    HeadRows rows_;
};

}  // namespace knap
