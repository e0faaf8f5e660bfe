// What a forward pass is asked for and what it returns, for one sequence of rows. A pass knows
// plans, rows and the cache, and no strategy.
#pragma once

#include <cstdint>
#include <span>

#include "knap/types.h"

#include "forward/attention_layout.h"
#include "forward/module_plan.h"
#include "sampling/draw_rule.h"
#include "sampling/logit_rows.h"
#include "sampling/stop_rule.h"

namespace knap {

struct ModelConfig;

// Rows of the device's stream bank (Forward::borrow_bank()) that a pass uses, by index.
struct BankRows {
    std::span<const int> hidden{};  // [n_rows] to resume from
    // [n_rows, n_captures] destinations of the captures, and rows to compare them with
    std::span<const int> captured{};
    std::span<const int> compared{};

    std::size_t n_numbers() const { return hidden.size() + captured.size() + compared.size(); }
};

// How a request shares passes with those of other sessions.
enum class PassKind : std::uint8_t {
    decode,  // a step, a draft or a verification: somebody waits for its token
    // Rows of a prompt. The pass may compute only the first of them, so that others do not wait for
    // a long one: see ForwardResult::n_rows. It must have no captures and at most one row of
    // logits, the last.
    prompt,
    // Measures or searches. It is not computed while other sessions are busy: the result is then
    // not complete, as if it were cancelled.
    search,
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
    // Above 0: return at least so many of the best tokens of those rows instead. At most
    // Forward::max_best(), with the whole head.
    int n_best = 0;
    BankRows bank{};  // streams that stay on the device
    PassKind kind = PassKind::decode;
};

// The number of rows, from whichever input is set.
int count_rows(const ForwardRequest& request, const ModelConfig& config);

// What other sessions have in a pass, or in several on average.
struct OtherWork {
    double n_rows = 0;
    double n_tokens = 0;  // that they get from it: see PassFacts
};

// The pass that computed a request.
struct PassFacts {
    int n_others = 0;  // rows of other sessions in it
    // What the others get from it, at least: a token for each that decodes, and rows of prompts.
    int n_other_tokens = 0;
    bool reads_prompts = false;  // some of the rows of others are those
    double ms = 0;               // its time in the devices, without waiting for a turn
    double wait_ms = 0;          // for its turn

    OtherWork others() const {
        return {.n_rows = static_cast<double>(n_others),
                .n_tokens = static_cast<double>(n_other_tokens)};
    }
};

// Views into memory of the Forward that ran the request: valid until its next pass.
struct ForwardResult {
    bool is_complete = true;  // false: cancelled; nothing below is filled
    int n_rows = 0;           // rows computed: all, but for a prompt
    // [n_vocab, n_logit_rows]; -infinity for tokens that a reduced head does not have
    std::span<const float> logits{};
    std::span<const Token> choices{};  // [n_logit_rows] if the request sets `chooses`
    BestTokens best{};                 // of n_logit_rows, if it sets `n_best`
    // Each [n_embd, n_rows]; empty if they go to the bank or are compared there
    std::span<const std::span<const float>> captures{};
    std::span<const float> cosines{};  // [n_rows, n_captures], if compared
    PassFacts pass{};
};

// One-row passes, chained on the device: each row but the first is the token that was chosen after
// the previous one. The host waits once for the whole chain, not after every token.
struct ChainRequest {
    Token token = 0;                   // the first row
    const ModulePlan* plan = nullptr;  // null: every module at full
    int first_row = 0;                 // cache row of the first row; the others follow it
    int n_steps = 1;                   // passes, at most max_chain(first_row)
    std::span<const int> captures{};   // as in a ForwardRequest
    // How tokens are chosen: greedily, or drawn as a Sampler does from the same logits, but for
    // near ties (kernels/cuda/step_sampling.cuh).
    DrawRule draw{};
    // What the chain may choose: one pass computes rows for these tokens, too, which serve as far
    // as the choices agree. Fewer than max_rows(), and than n_steps; only where chains stop.
    std::span<const Token> guess{};
    // Ends the chain early, going on with the draft so far. Null: only n_steps does.
    const StopState* stop = nullptr;
};

// Views into memory of the Forward that ran the chain: valid until its next pass.
struct ChainResult {
    bool is_complete = true;  // false: cancelled
    // Of the n <= n_steps passes that ran.
    std::span<const Token> tokens{};  // [n] chosen after each row
    // [n] confidences, of what the stop rule says: without one, of these tokens before any
    // transform
    std::span<const float> probabilities{};
    std::span<const std::span<const float>> captures{};  // each [n_embd, n]
};

// What other sessions ask for, as one of them sees it.
struct Load {
    int n_sessions = 0;  // others that are being served
    OtherWork others{};  // in its latest decoding passes of the whole model, running means
    int n_waiting = 0;   // runs and work that wait now
};

// What the passes of a sequence had to do with others, in total.
struct PassTotals {
    std::int64_t n_passes = 0;
    std::int64_t n_other_rows = 0;
    double wait_ms = 0;    // for its turns
    double others_ms = 0;  // the time of its passes that goes to rows of others
};

struct ForwardStatistics {
    GraphStatistics graphs;
    std::int64_t reservations = 0;  // how often memory had to be reserved
    std::size_t scratch_bytes = 0;  // compute memory, inputs, a bank and a reduced head
    std::size_t bytes_read = 0;     // of results, from devices with their own memory
    double compute_ms = 0;          // in the devices, in total
};

}  // namespace knap
