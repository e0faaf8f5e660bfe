// Gives the runs of a pass their parts of its results.
#pragma once

#include <span>

#include "knap/types.h"

#include "graph/pass_rows.h"
#include "model/config.h"

namespace knap {

// What a pass gave, of all its rows, padding included.
struct PassOutputs {
    // [n_vocab or rows of a reduced head, n_logit_rows]; only rows that somebody wants are filled
    std::span<const float> logits{};
    std::span<const Token> choices{};                    // [n_logit_rows], or [n_steps] of a chain
    BestTokens best{};                                   // of n_logit_rows
    std::span<const std::span<const float>> captures{};  // each [n_embd, n_rows]
    std::span<const float> cosines{};
    std::span<const float> probabilities{};  // of a chain: [n_steps]
    std::span<const float> stream{};         // [n_embd, n_rows]
    int n_logit_rows = 0;
};

// `outputs.captures` are those of `rows.captures`.
void deliver(const ModelConfig& config, const PassRows& rows, const PassOutputs& outputs);

}  // namespace knap
