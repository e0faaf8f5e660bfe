// Built graphs, kept for reuse. A graph is named by everything that shapes it; only inputs change
// between its runs. The number kept is bounded, the least recently used makes room, and all graphs
// live in memory reserved once.
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

#include "graph/attention_blocks.h"
#include "graph/attention_groups.h"
#include "graph/module_plan.h"

namespace knap {

// What is built of a layer.
struct LayerShape {
    int attention_group = kNoGroup;
    bool has_mlp = false;

    bool operator==(const LayerShape&) const = default;
};

// What a pass does with the rows of a bank: see BankRows.
struct BankUse {
    bool takes = false;     // resumes from some
    bool puts = false;      // captures go to some
    bool compares = false;  // captures are compared with some

    bool operator==(const BankUse&) const = default;
};

// Everything that shapes a graph.
struct GraphKey {
    int n_rows = 0;
    int entry_layer = 0;
    int n_logit_rows = 0;
    int n_chained = 0;          // passes of one row each: see ChainRequest; 0: one of n_rows
    bool embeds_tokens = true;  // false: resumes from hidden rows
    bool gives_stream = false;  // for the device that computes the layers after these
    bool chooses = false;       // gives the likeliest tokens instead of logits
    BankUse bank{};
    HeadLevel head = HeadLevel::full;  // of the logits; full where there are none
    std::vector<LayerShape> layers{};  // from entry_layer on
    // Of each group. Where the recent rows begin is an input of our kernel, and 0 here; it shapes
    // the graphs of the other paths.
    std::array<std::vector<AttentionBlock>, kMaxGroups> blocks{};
    bool follows_tree = false;  // full attention of our kernel reads the paths of a tree
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
    // Null when none are asked for:
    ggml_tensor* logits = nullptr;   // f32 [n_vocab, n_logit_rows]
    ggml_tensor* choices = nullptr;  // i32 [n_logit_rows], or [n_chained] of a chain
    ggml_tensor* stream = nullptr;   // f32 [n_embd, n_rows]
    ggml_tensor* cosines = nullptr;  // f32 [1, n_rows * n_captures]
    std::vector<ggml_tensor*> captures;
    ggml_tensor* probabilities = nullptr;  // f32 [n_chained]: of a chain, null otherwise
};

class GraphCache {
  public:
    // `arena_bytes` is the metadata memory of one graph.
    GraphCache(std::size_t n_graphs, std::size_t arena_bytes);
    ~GraphCache();

    // The graph of `key`, now the most recently used; null when it has to be built.
    BuiltGraph* find(const GraphKey& key);
    // A place for the graph of `key`, with an empty arena; the least recently used graph gives way
    // when all are taken.
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
