#include "tools/check/direct_pass.h"

#include "search/row_numbers.h"

namespace knap {

DirectPass::DirectPass(Engine::Impl& engine, int n_tokens, int max_rows)
    : rows_(engine.single_sequence(n_tokens, max_rows)), all_rows_(row_numbers(max_rows)) {}

std::span<const float> DirectPass::feed(std::span<const Token> tokens) {
    Sequence& cache = rows_->sequence();
    const ForwardResult result = rows_->forward().run({
        .tokens = tokens,
        .first_row = cache.committed(),
        .logit_rows = std::span(all_rows_).first(tokens.size()),
    });
    cache.commit(cache.committed() + static_cast<int>(tokens.size()));
    return result.logits;
}

}  // namespace knap
