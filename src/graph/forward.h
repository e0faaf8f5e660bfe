// The one forward pass: a request in, logits and captured hidden rows out. It knows plans, rows and
// the cache; it knows no strategy.
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

// Memory is reserved for so many rows of logits in advance; a pass that asks for more makes it grow
// once.
inline constexpr int kReservedLogitRows = 32;

// Rows of the device's bank (Forward::borrow_bank()) that a pass uses, by their numbers.
struct BankRows {
    std::span<const int> hidden{};  // [n_rows] to resume from
    // [n_rows, n_captures] where captures go, and what their rows are compared with
    std::span<const int> captured{};
    std::span<const int> compared{};

    std::size_t n_numbers() const { return hidden.size() + captured.size() + compared.size(); }
};

// One pass over n_rows rows. Exactly one of `tokens`, `hidden` and `bank.hidden` is given.
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
    std::span<const int> logit_rows{};  // rows whose logits are wanted, ascending
    bool chooses = false;               // the likeliest tokens of those rows are, not their logits
    BankRows bank{};                    // streams that stay on the device
};

// Rows of tokens or of hidden rows, wherever those lie.
int count_rows(const ForwardRequest& request, const ModelConfig& config);

// Views into the pass's own memory: valid until the next pass.
struct ForwardResult {
    bool is_complete = true;  // false: cancelled; nothing below is filled
    // [n_vocab, n_logit_rows]; -infinity for tokens that a reduced head does not have
    std::span<const float> logits{};
    std::span<const Token> choices{};  // [n_logit_rows], of a request that chooses
    // Each [n_embd, n_rows]; none where they go to the bank or are compared there
    std::span<const std::span<const float>> captures{};
    std::span<const float> cosines{};  // [n_rows, n_captures], of those compared
};

// Passes of one row each, chained on the device: every row but the first is that of the likeliest
// token after the row before. The program is asked once, not after every token.
struct ChainRequest {
    Token token = 0;                   // of the first row
    const ModulePlan* plan = nullptr;  // null: every module at full
    int first_row = 0;                 // cache row of the first row; the others follow it
    int n_steps = 1;                   // passes, at most max_chain(first_row)
    std::span<const int> captures{};   // as of a ForwardRequest
};

// Views into the pass's own memory: valid until the next pass.
struct ChainResult {
    bool is_complete = true;                             // false: cancelled
    std::span<const Token> tokens{};                     // [n_steps], the likeliest after each row
    std::span<const float> probabilities{};              // [n_steps], of those, untransformed
    std::span<const std::span<const float>> captures{};  // each [n_embd, n_steps]
};

struct ForwardStatistics {
    GraphStatistics graphs;
    std::int64_t reservations = 0;  // times that memory had to be reserved
    std::size_t scratch_bytes = 0;  // compute memory, inputs, a bank and a reduced head
    std::size_t bytes_read = 0;     // of results, from devices with memory of their own
    double compute_ms = 0;          // inside the devices, since the beginning
};

class Forward {
  public:
    // Reserves the memory of the largest pass. Layers are computed where the cache has their rows.
    // Everything given must outlive the object; graphs hold the cache's tensors, so one Forward
    // serves one cache. Layers whose tensors have no MLP are attention alone, whatever a plan says.
    Forward(const ModelConfig& config, const ModelTensors& tensors, KvCache& cache, int n_ubatch);
    ~Forward();

    // Lets plans with a reduced head run, with these rows of it. Must outlive the object, as what
    // is given to the constructor must.
    void set_draft_head(HeadSubset& head);
    // The cheapest head that a plan may have.
    HeadLevel cheapest_head() const;

    // Runs the pass; the cache's committed line does not move. Rows must fit max_rows() and the
    // cache.
    ForwardResult run(const ForwardRequest& request);

    // Most passes of a chain whose first row is cache row `first_row`. 0: none are chained,
    // wherever they begin, because the device is the host, where to ask the program after every
    // token costs nothing.
    int max_chain(int first_row) const;
    ChainResult run_chain(const ChainRequest& request);

    // Room for so many rows of streams on the device, of one holder at a time: lent for as long as
    // the pointer is held, which the object must outlive. The rows hold anything at first. Null:
    // streams have to be carried over the program's memory, because it is the device's own, because
    // there are several devices, or because there is no room.
    std::shared_ptr<const StreamBank> borrow_bank(std::size_t n_rows);

    // Most rows of one pass whose first row is cache row `first_row`.
    int max_rows(int first_row) const;
    const ModelConfig& config() const;
    const ForwardStatistics& statistics() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
