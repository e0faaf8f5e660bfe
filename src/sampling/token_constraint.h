// What may come next at one place of a text: a grammar, as sampling and drafting see it. An object
// stands at its place and moves along the text with accept().
#pragma once

#include <memory>
#include <vector>

#include "knap/types.h"

namespace knap {

class TokenConstraint {
  public:
    virtual ~TokenConstraint() = default;

    // Removes the tokens that must not come next. The others keep their order. Whether a token
    // stays does not depend on those beside it.
    virtual void keep_fitting(std::vector<Token>& tokens) = 0;
    // Moves past a token. After one that ends the text nothing fits. Returns false, and is of no
    // use from then on, when the token does not fit; rarely that shows only here.
    [[nodiscard]] virtual bool accept(Token token) = 0;
    // Whether a token has ended the text.
    virtual bool has_ended() const = 0;
    // A second object at the same place, for drafts.
    virtual std::unique_ptr<TokenConstraint> clone() const = 0;

    bool fits(Token token) {
        one_.assign(1, token);
        keep_fitting(one_);
        return !one_.empty();
    }

  private:
    std::vector<Token> one_;
};

}  // namespace knap
