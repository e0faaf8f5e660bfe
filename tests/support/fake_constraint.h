// A constraint for tests: a function of the text so far says which tokens fit.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "sampling/token_constraint.h"

namespace knap::test {

class FakeConstraint final : public TokenConstraint {
  public:
    using Fits = std::function<bool(const std::vector<Token>& text, Token token)>;

    explicit FakeConstraint(Fits fits) : fits_(std::move(fits)) {}

    void keep_fitting(std::vector<Token>& tokens) override {
        n_asked += static_cast<int>(tokens.size());
        std::erase_if(tokens, [&](Token token) { return !fits_(text, token); });
    }
    bool accept(Token token) override {
        const bool fits = fits_(text, token);
        text.push_back(token);
        return fits;
    }
    bool has_ended() const override { return !text.empty() && text.back() == end_of_text; }
    std::unique_ptr<TokenConstraint> clone() const override {
        return std::make_unique<FakeConstraint>(*this);
    }

    std::vector<Token> text;  // accepted so far
    int n_asked = 0;          // tokens, in all calls
    Token end_of_text = -1;

  private:
    Fits fits_;
};

// Forbids about `share` of all tokens, others after every text, but never token 0.
FakeConstraint::Fits random_constraint(std::uint64_t seed, double share);

}  // namespace knap::test
