#include "check/direct_pass.h"

#include <numeric>

namespace knap {

DirectPass::DirectPass(Engine::Impl& engine, int n_tokens, int max_rows)
    : cache_(engine.make_cache(n_tokens)),
      forward_(engine.model, engine.weights->tensors(), cache_, max_rows),
      all_rows_(static_cast<std::size_t>(max_rows)) {
    std::iota(all_rows_.begin(), all_rows_.end(), 0);
}

std::span<const float> DirectPass::feed(std::span<const Token> tokens) {
    const ForwardResult result = forward_.run({
        .tokens = tokens,
        .first_row = cache_.committed(),
        .logit_rows = std::span(all_rows_).first(tokens.size()),
    });
    cache_.commit(cache_.committed() + static_cast<int>(tokens.size()));
    return result.logits;
}

}  // namespace knap
