// The inputs of a forward pass: tensors in their own memory, large enough for any pass, so that
// they survive a computation and keep their address for every graph. Graphs use views of the parts
// they need.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "ggml-cpp.h"

#include "device/mirrored_buffer.h"
#include "forward/batch.h"
#include "graph/attention/attention_groups.h"
#include "graph/attention/ggml_attention.h"
#include "graph/cache/ggml_kv_store.h"
#include "graph/graph_cache.h"
#include "graph/pass_rows.h"

namespace knap {

class ForwardInputs {
  public:
    // For passes over the layers of `cache`, on its device. `rules` are those of its attention.
    ForwardInputs(const ModelConfig& config,
                  const GgmlKvStore& cache,
                  const BlockRules& rules,
                  int n_ubatch);

    // Makes room for `n_entries` mask entries. Returns true when the masks moved, which invalidates
    // every graph. Initially there is room for any pass with full attention; windows may need more,
    // once.
    bool reserve_masks(std::size_t n_entries);
    // Fills the inputs of the graph of `key` for these rows, and uploads them to the device.
    void set(const PassRows& rows, const GraphKey& key, std::span<const AttentionGroup> groups);
    // The same for a chain of one-row passes. The blocks are those of every step.
    void set_chain(const ChainRun& run, std::span<const AttentionGroup> groups);

    ggml_tensor* tokens(ggml_context* ctx, int n_rows) const;  // i32 [n_rows]
    ggml_tensor* hidden(ggml_context* ctx, int n_rows) const;  // f32 [n_embd, n_rows]
    // i32 [n_rows], from row `first` on
    ggml_tensor* positions(ggml_context* ctx, int n_rows, int first = 0) const;
    // What queries are multiplied by, f32 [1, 1, n_rows]; null: nothing.
    ggml_tensor* query_scales(ggml_context* ctx, int n_rows, int first) const;
    // Rotations by nothing, as rope_table().
    ggml_tensor* unit_pairs(ggml_context* ctx, int n_rows) const;
    ggml_tensor* logit_rows(ggml_context* ctx, int n_rows) const;  // i32 [n_rows]
    KvSlots slots(ggml_context* ctx, int n_rows, int first = 0) const;
    // The frequency divisors of the configuration, f32 [n_rot / 2]; null: none.
    ggml_tensor* divisors() const { return divisors_; }
    // The rotations of rows, f32 [n_rot, n_rows] (see rotation.h), computed from the positions and
    // the model's `divisors`; null if our kernel does not run, or no layer rotates so.
    ggml_tensor* rope_table(ggml_context* ctx,
                            Rotation rotation,
                            ggml_tensor* divisors,
                            int n_rows) const;
    // The inputs of every group, which refer to the blocks of `key`; for a chain, those of pass
    // `step`. Not for our kernel.
    std::array<AttentionInputs, kMaxGroups> attention(ggml_context* ctx,
                                                      const GraphKey& key,
                                                      int step = 0) const;

    std::size_t bytes() const;

  private:
    template <typename RunOf>
    void set_masks(std::span<const AttentionGroup> groups, int n_steps, RunOf run_of);
    void set_slots(std::span<const std::int32_t> stored, int n_padded);
    void upload_numbers(int n_rows);

    const ModelConfig& config_;
    const GgmlKvStore& cache_;
    const std::size_t n_ubatch_;
    ggml_context_ptr context_;
    std::optional<MirroredBuffer> numbers_;
    ggml_tensor* tokens_ = nullptr;
    ggml_tensor* positions_ = nullptr;
    ggml_tensor* query_scales_ = nullptr;  // null: none
    ggml_tensor* divisors_ = nullptr;      // constant
    ggml_tensor* logit_rows_ = nullptr;
    ggml_tensor* unit_pairs_ = nullptr;  // for our kernel, f32 [n_rot, n_ubatch]: constant
    KvSlots slots_;
    ggml_context_ptr hidden_context_;
    std::optional<MirroredBuffer> hidden_buffer_;
    ggml_tensor* hidden_ = nullptr;
    ggml_context_ptr mask_context_;
    std::optional<MirroredBuffer> mask_buffer_;
    // f16, one block after the other, group by group; null for our kernel
    ggml_tensor* mask_ = nullptr;
};

}  // namespace knap
