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
#include "forward/attention_layout.h"
#include "graph/attention.h"
#include "graph/attention_groups.h"
#include "graph/forward.h"
#include "graph/graph_cache.h"
#include "kv/kv_store.h"

namespace knap {

class ForwardInputs {
  public:
    // For passes over the layers of `cache`, on its device.
    ForwardInputs(const ModelConfig& config, const KvStore& cache, int n_ubatch);

    // Makes room for `n_entries` mask entries. Returns true when the masks moved, which invalidates
    // every graph. Initially there is room for any pass with full attention; windows may need more,
    // once.
    bool reserve_masks(std::size_t n_entries);
    // Fills the inputs of the graph of a pass over `n_rows` rows and uploads them to the device.
    // The context of `layout` must be known.
    void set(const ForwardRequest& request,
             const AttentionLayout& layout,
             std::span<const AttentionGroup> groups,
             int n_rows);
    // The same for a chain of `n_steps` one-row passes. The blocks are those of every step.
    void set_chain(const ChainRequest& request,
                   const AttentionLayout& layout,
                   std::span<const AttentionGroup> groups);

    ggml_tensor* tokens(ggml_context* ctx, int n_rows) const;  // i32 [n_rows]
    ggml_tensor* hidden(ggml_context* ctx, int n_rows) const;  // f32 [n_embd, n_rows]
    // i32 [n_rows], from row `first` on
    ggml_tensor* positions(ggml_context* ctx, int n_rows, int first = 0) const;
    ggml_tensor* logit_rows(ggml_context* ctx, int n_rows) const;  // i32 [n_rows]
    KvSlots slots(ggml_context* ctx, int n_rows, int first = 0) const;
    // The rotations of rows, f32 [n_rot, n_rows] (see rotation.h), computed from the positions and
    // the model's `divisors`; null if our kernel does not run.
    ggml_tensor* turns(ggml_context* ctx, ggml_tensor* divisors, int n_rows) const;
    // The inputs of every group, which refer to the blocks of `key`; for a chain, those of pass
    // `step`.
    std::array<AttentionInputs, kMaxGroups> attention(ggml_context* ctx,
                                                      const GraphKey& key,
                                                      int step = 0) const;

    std::size_t bytes() const;

  private:
    void set_positions(int first_row, const AttentionLayout& layout, int n_rows);
    // Masks of a block for `n_steps` passes, each a row further, lie one after the other.
    void set_masks(int first_row,
                   const AttentionLayout& layout,
                   std::span<const AttentionGroup> groups,
                   int n_steps);
    void set_runs(std::span<const AttentionGroup> groups);
    void set_slots(int first_row, int n_rows);
    void upload_numbers(int n_rows);

    const ModelConfig& config_;
    const KvStore& cache_;
    const std::size_t n_ubatch_;
    ggml_context_ptr context_;
    std::optional<MirroredBuffer> numbers_;
    ggml_tensor* tokens_ = nullptr;
    ggml_tensor* positions_ = nullptr;
    ggml_tensor* logit_rows_ = nullptr;
    ggml_tensor* runs_ = nullptr;  // i32 [2, kMaxBlocks * kMaxWindows], one block after the other
    ggml_tensor* tree_ = nullptr;  // for our kernel, i32: see TreePaths
    ggml_tensor* unit_pairs_ = nullptr;  // for our kernel, f32 [n_rot, n_ubatch]: constant
    KvSlots slots_;
    ggml_context_ptr hidden_context_;
    std::optional<MirroredBuffer> hidden_buffer_;
    ggml_tensor* hidden_ = nullptr;
    ggml_context_ptr mask_context_;
    std::optional<MirroredBuffer> mask_buffer_;
    ggml_tensor* mask_ = nullptr;  // f16, one block after the other, group by group
};

}  // namespace knap
