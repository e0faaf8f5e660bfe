// Computes an adapter with plain loops in f64, from the numbers of its file.
#pragma once

#include <span>
#include <vector>

#include "model/config.h"
#include "support/tiny_gguf.h"

namespace knap::test {

// Logits [n_vocab] after every row of `streams`: the model's streams [n_embd, n_rows] at the exit
// layer, for the first tokens of a text. `head` is the model's output matrix {n_embd, n_vocab} in
// F32.
std::vector<std::vector<float>> naive_adapter_logits(TinyGguf& adapter,
                                                     const ModelConfig& config,
                                                     const ggml_tensor* head,
                                                     std::span<const float> streams);

}  // namespace knap::test
