// Built graphs, kept for reuse. A graph is identified by everything that shapes it; only its inputs
// change between runs. The number of graphs is bounded: the least recently used one is replaced.
// All graphs live in memory reserved once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "ggml-cpp.h"

#include "knap/types.h"

#include "forward/attention_blocks.h"
#include "forward/module_plan.h"
#include "graph/attention/attention_groups.h"

namespace knap {

// The modules of a layer that are built.
struct LayerShape {
    int attention_group = kNoGroup;
    bool has_mlp = false;
    int n_experts = 0;  // that rows use; 0: as many as in the whole model

    bool operator==(const LayerShape&) const = default;
};

// How a pass uses the rows of a bank: see BankRows.
struct BankUse {
    bool takes = false;     // resumes from rows
    bool puts = false;      // captures go to rows
    bool compares = false;  // captures are compared with rows

    bool operator==(const BankUse&) const = default;
};

// Everything that shapes a graph.
struct GraphKey {
    int n_rows = 0;  // with padding
    int entry_layer = 0;
    int n_logit_rows = 0;  // with padding
    int n_chained = 0;     // one-row passes of a chain: see ChainRequest; 0: one pass of n_rows
    bool embeds_tokens = true;  // false: resumes from hidden rows
    bool gives_stream = false;  // for the device of the next layers
    bool chooses = false;       // returns the argmax instead of logits
    BankUse bank{};
    std::uint64_t reduced_head = 0;    // identifies the head for the logits; 0: the whole head
    std::vector<LayerShape> layers{};  // from entry_layer on
    // Per group; empty for our kernel, which reads its plan when the graph runs.
    std::array<std::vector<AttentionBlock>, kMaxGroups> blocks{};
    std::vector<int> captures{};

    std::size_t n_passes() const { return n_chained > 0 ? static_cast<std::size_t>(n_chained) : 1; }
    int exit_layer() const { return entry_layer + static_cast<int>(layers.size()); }
    const LayerShape& layer(int i) const {
        return layers[static_cast<std::size_t>(i - entry_layer)];
    }
    bool operator==(const GraphKey&) const = default;
};

struct BuiltGraph {
    ggml_context_ptr context;  // metadata, in the slot's arena
    ggml_cgraph* graph = nullptr;
    // Null if not requested:
    ggml_tensor* logits = nullptr;   // f32 [n_vocab, n_logit_rows]
    ggml_tensor* choices = nullptr;  // i32 [n_logit_rows], or [n_chained] of a chain
    ggml_tensor* stream = nullptr;   // f32 [n_embd, n_rows]
    ggml_tensor* cosines = nullptr;  // f32 [1, n_rows * n_captures]
    std::vector<ggml_tensor*> captures;
    ggml_tensor* probabilities = nullptr;  // f32 [n_chained], for a chain only
};

class GraphCache {
  public:
    // `arena_bytes` is the metadata memory of one graph.
    GraphCache(std::size_t n_graphs, std::size_t arena_bytes);
    ~GraphCache();

    // The graph for `key`, which becomes the most recently used; null if it has to be built.
    BuiltGraph* find(const GraphKey& key);
    // A slot for the graph of `key`, with an empty arena. Replaces the least recently used graph if
    // all are taken.
    BuiltGraph& place(const GraphKey& key);
    std::span<std::byte> arena(const BuiltGraph& graph) const;
    void clear();  // after the compute memory moved, no graph is valid

    const GraphStatistics& statistics() const { return statistics_; }
    void reset_statistics() { statistics_ = {}; }
    std::size_t reserved_bytes() const { return n_graphs_ * arena_bytes_; }

  private:
    struct Slot {
        GraphKey key;
        BuiltGraph built;
        std::size_t arena;
    };

    std::size_t n_graphs_;
    std::size_t arena_bytes_;
    std::byte* memory_ = nullptr;
    std::list<Slot> slots_;  // most recently used first
    std::vector<std::size_t> free_arenas_;
    GraphStatistics statistics_;
};

}  // namespace knap
