// One pass over the layers of a model on the CPU, as phases that the threads of a team compute
// together. What runs is data: rows of any sequences, any plan, any range of layers. Nothing is
// built for a shape.
//
// A layer is five phases: queries, keys and values (each head is rotated and stored as soon as it
// is multiplied), attention, its output, gate and up (gated and rounded at once), down. Where there
// are more than a few rows, the inputs of three of the products are prepared in a phase of their
// own. Experts take six phases in place of two: the router's logits, what rows choose, who has
// chosen an expert, gate and up, down, and the sum.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cpu/best_rows.h"
#include "cpu/cpu_weights.h"
#include "cpu/expert_rows.h"
#include "device/thread_team.h"
#include "graph/attention/attention_groups.h"
#include "graph/attention/attention_tasks.h"
#include "graph/cache/ggml_kv_store.h"
#include "model/config.h"

namespace knap {

struct Tile;

// What all passes of a stage have in common. All references must outlive it.
struct CpuModel {
    const ModelConfig& config;
    std::vector<CpuLayer> layers;  // from first_layer on
    int first_layer = 0;
    const ggml_tensor* token_embd = nullptr;
    const float* output_norm = nullptr;
    std::vector<KvTensors> cached;  // of each layer

    const CpuLayer& layer(int i) const { return layers[static_cast<std::size_t>(i - first_layer)]; }
};

// The rows of a pass and what is wanted of them.
struct CpuRequest {
    int n_rows = 0;
    std::span<const Token> tokens{};         // [n_rows]; empty: the stream is set already
    std::span<const std::int32_t> stored{};  // [n_rows] where each row goes in the cache
    // [n_rows] the rotations of each row, in layers of either kind; empty: no layer is of the kind
    std::span<const float* const> turns{};
    std::span<const float* const> local_turns{};
    std::span<const float> unit_pairs{};    // the same for layers that do not rotate
    std::span<const float> query_scales{};  // [n_rows]; empty: none
    const ModulePlan* plan = nullptr;
    const AttentionGroups* groups = nullptr;         // of the plan's attentions
    std::span<const AttentionTasks* const> tasks{};  // of each group
    int entry_layer = 0;
    int exit_layer = 0;
    std::span<const int> captures{};
    std::span<const int> logit_rows{};
    bool ranks = false;  // list the best tokens of these rows
    bool gives_stream = false;
    CpuMatrix head{};  // if there are logit rows
    std::function<bool()> is_cancelled;
};

class CpuPass {
  public:
    // Reserves memory for passes of up to `max_rows` rows on a team of `n_threads` threads.
    CpuPass(CpuModel model, int max_rows, int n_threads);

    // Where the rows of a pass begin if they are not tokens: [n_embd, n_rows].
    std::span<float> stream(int n_rows);
    // Returns false if the pass was cancelled.
    bool run(ThreadTeam& team, const CpuRequest& request);

    // --- results of the last pass ---
    // [head's n_out, n_logit_rows]
    std::span<const float> logits() const { return std::span(logits_).first(n_logits_); }
    // Of all logit rows, if the request wanted them.
    BestTokens best() { return best_.list(logits()); }
    std::span<const std::span<const float>> captures() const { return capture_views_; }

    std::size_t bytes() const;  // reserved

  private:
    // One thread's way through the phases.
    class Walk;
    // Memory of one thread.
    struct Scratch {
        std::vector<std::byte> inputs;  // of a few rows
        std::vector<float> tile;
        ExpertScratch experts;
    };

    std::size_t n_embd() const { return static_cast<std::size_t>(model_.config.n_embd); }

    CpuModel model_;
    int max_rows_;
    std::vector<float> stream_;      // [n_embd, max_rows]
    std::vector<float> queries_;     // [n_embd_q, max_rows]
    std::vector<float> attended_;    // [n_embd_q, max_rows]
    std::vector<float> keys_;        // [n_embd_kv, max_rows], if rows of keys are normalised whole
    std::vector<float> results_;     // [n_embd, max_rows] of modules with a norm behind them
    std::vector<std::byte> inputs_;  // of a product: rows in its form
    std::vector<std::byte> hidden_;  // inputs of `down`
    ExpertRows experts_;
    std::vector<float> logits_;  // of the largest pass so far
    std::size_t n_logits_ = 0;
    BestRows best_;
    std::vector<std::vector<float>> captures_;
    std::vector<std::span<const float>> capture_views_;
    std::vector<Scratch> scratch_;  // of each thread
};

}  // namespace knap
