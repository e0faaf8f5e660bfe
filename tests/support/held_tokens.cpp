#include "support/held_tokens.h"

#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "model/head_subset.h"

namespace knap::test {

std::vector<Token> held_tokens(const HeadSubset& subset, int n_vocab) {
    std::vector<float> rows(static_cast<std::size_t>(HeadSubset::capacity_for(n_vocab)));
    std::iota(rows.begin(), rows.end(), 0.0f);
    std::vector<float> spread;
    subset.spread(rows, spread);
    std::map<float, Token> by_row;
    for (Token token = 0; token < n_vocab; ++token) {
        const float row = spread[static_cast<std::size_t>(token)];
        if (row >= 0) {
            EXPECT_TRUE(by_row.emplace(row, token).second) << "two tokens in row " << row;
        }
    }
    std::vector<Token> tokens;
    for (const auto& [row, token] : by_row) {
        EXPECT_EQ(row, static_cast<float>(tokens.size())) << "the first rows are in use";
        tokens.push_back(token);
    }
    return tokens;
}

}  // namespace knap::test
