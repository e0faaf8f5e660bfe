// Tokens for passes whose text does not matter.
#pragma once

#include <vector>

#include "knap/types.h"

namespace knap {

// Ids from all over the vocabulary, so that rows choose the experts that those of a text might.
inline std::vector<Token> some_tokens(int n, int n_vocab) {
    constexpr int kStride = 7919;  // a prime: neighbours differ
    std::vector<Token> tokens;
    for (int i = 1; i <= n; ++i) {
        tokens.push_back(i * kStride % n_vocab);
    }
    return tokens;
}

}  // namespace knap
