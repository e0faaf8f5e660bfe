// The forward pass: takes a request, returns logits and captured streams. It handles plans, rows
// and the cache, and knows no strategy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "knap/types.h"

#include "graph/attention_layout.h"
#include "graph/module_plan.h"

namespace knap {

class HeadSubset;
class KvCache;
class StreamBank;
struct ModelConfig;
struct ModelTensors;

// Logit rows that memory is reserved for in advance. A pass that needs more makes it grow once.
inline constexpr int kReservedLogitRows = 32;

// Rows of the device's stream bank (Forward::borrow_bank()) that a pass uses, by index.
struct BankRows {
    std::span<const int> hidden{};  // [n_rows] to resume from
    // [n_rows, n_captures] destinations of the captures, and rows to compare them with
    std::span<const int> captured{};
    std::span<const int> compared{};

    std::size_t n_numbers() const { return hidden.size() + captured.size() + compared.size(); }
};

// One pass over n_rows rows. Exactly one of `tokens`, `hidden` and `bank.hidden` is set.
struct ForwardRequest {
    std::span<const Token> tokens{};   // rows to embed; entry_layer is then 0
    std::span<const float> hidden{};   // rows to resume from before `entry_layer`: [n_embd, n_rows]
    const ModulePlan* plan = nullptr;  // null: every module at full
    int first_row = 0;                 // cache row of the first row; the others follow it
    AttentionLayout layout{};
    int entry_layer = 0;
    int exit_layer = -1;  // layers [entry_layer, exit_layer) run; -1: all that follow
    // i: the stream after the first i modules; ascending, within the layers run
    std::span<const int> captures{};
    std::span<const int> logit_rows{};  // rows to compute logits for, ascending
    bool chooses = false;               // return the argmax of those rows instead of their logits
    BankRows bank{};                    // streams that stay on the device
};

// The number of rows, from whichever input is set.
int count_rows(const ForwardRequest& request, const ModelConfig& config);

// Views into the pass's own memory: valid until the next pass.
struct ForwardResult {
    bool is_complete = true;  // false: cancelled; nothing below is filled
    // [n_vocab, n_logit_rows]; -infinity for tokens that a reduced head does not have
    std::span<const float> logits{};
    std::span<const Token> choices{};  // [n_logit_rows] if the request sets `chooses`
    // Each [n_embd, n_rows]; empty if they go to the bank or are compared there
    std::span<const std::span<const float>> captures{};
    std::span<const float> cosines{};  // [n_rows, n_captures], if compared
};

// One-row passes, chained on the device: each row but the first is the argmax after the previous
// one. The host waits once for the whole chain, not after every token.
struct ChainRequest {
    Token token = 0;                   // the first row
    const ModulePlan* plan = nullptr;  // null: every module at full
    int first_row = 0;                 // cache row of the first row; the others follow it
    int n_steps = 1;                   // passes, at most max_chain(first_row)
    std::span<const int> captures{};   // as in a ForwardRequest
};

// Views into the pass's own memory: valid until the next pass.
struct ChainResult {
    bool is_complete = true;                 // false: cancelled
    std::span<const Token> tokens{};         // [n_steps] argmax after each row
    std::span<const float> probabilities{};  // [n_steps] of these tokens, before any transform
    std::span<const std::span<const float>> captures{};  // each [n_embd, n_steps]
};

struct ForwardStatistics {
    GraphStatistics graphs;
    std::int64_t reservations = 0;  // how often memory had to be reserved
    std::size_t scratch_bytes = 0;  // compute memory, inputs, a bank and a reduced head
    std::size_t bytes_read = 0;     // of results, from devices with their own memory
    double compute_ms = 0;          // in the devices, in total
};

class Forward {
  public:
    // Reserves the memory of the largest pass. Layers are computed on the device that has their
    // cache rows. All arguments must outlive the object. Graphs refer to the cache's tensors, so
    // one Forward serves one cache. Layers whose tensors have no MLP consist of attention only,
    // whatever the plan.
    Forward(const ModelConfig& config, const ModelTensors& tensors, KvCache& cache, int n_ubatch);
    ~Forward();

    // Enables plans with a reduced head, with these rows of the head. `head` must outlive the
    // object.
    void set_draft_head(HeadSubset& head);
    // The cheapest head that a plan may use.
    HeadLevel cheapest_head() const;

    // Runs the pass. Does not change the number of committed rows. The rows must fit max_rows() and
    // the cache.
    ForwardResult run(const ForwardRequest& request);

    // The most passes of a chain whose first row is cache row `first_row`. 0 for every row if the
    // device is the host, where returning to the program after every token costs nothing.
    int max_chain(int first_row) const;
    ChainResult run_chain(const ChainRequest& request);

    // Lends memory for `n_rows` rows of streams on the device, to one holder at a time, for as long
    // as the pointer is held; the object must outlive it. The rows are uninitialised. Null if
    // streams have to go through host memory: because the device computes there, because there are
    // several devices, or because there is no room.
    std::shared_ptr<const StreamBank> borrow_bank(std::size_t n_rows);

    // The most rows of a pass whose first row is cache row `first_row`.
    int max_rows(int first_row) const;
    const ModelConfig& config() const;
    const ForwardStatistics& statistics() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
