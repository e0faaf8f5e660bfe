#include "tools/check/direct_pass.h"

#include "search/row_numbers.h"

namespace knap {

DirectPass::DirectPass(Engine::Impl& engine, int n_tokens, int max_rows)
    : cache_(engine.make_cache(n_tokens)),
      forward_(engine.model, engine.weights->tensors(), cache_, max_rows),
      all_rows_(row_numbers(max_rows)) {}

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
