#include "runtime/batch_invariance.h"

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "forward/forward.h"
#include "model/config.h"
#include "search/row_numbers.h"
#include "search/some_tokens.h"

namespace knap {
namespace {

// [n_vocab, n_rows], valid until the next pass.
std::span<const float> logits_of(Forward& forward, std::span<const Token> tokens, int first_row) {
    const std::vector<int> rows = row_numbers(static_cast<int>(tokens.size()));
    return forward.run({.tokens = tokens, .first_row = first_row, .logit_rows = rows}).logits;
}

}  // namespace

bool is_batch_invariant(Forward& forward, int n_rows) {
    const std::vector<Token> tokens = some_tokens(n_rows, forward.config().n_vocab);
    std::vector<float> alone;  // [n_vocab, n_rows]
    for (int row = 0; row < n_rows; ++row) {
        const auto token = std::span(tokens).subspan(static_cast<std::size_t>(row), 1);
        const std::span<const float> logits = logits_of(forward, token, row);
        alone.insert(alone.end(), logits.begin(), logits.end());
    }
    for (std::size_t n = 2; n <= tokens.size(); ++n) {
        const std::span<const float> together = logits_of(forward, std::span(tokens).first(n), 0);
        if (std::memcmp(together.data(), alone.data(), together.size_bytes()) != 0) {
            return false;
        }
    }
    return true;
}

}  // namespace knap
