// The text that a grammar forces to come next, as strategies see it. Other tokens than the usual
// ones can spell it, so a draft of it is likely to be right, but not certain.
#pragma once

#include <span>

#include "knap/types.h"

namespace knap {

class ForcedText {
  public:
    virtual ~ForcedText() = default;
    // How many of the first tokens agree with the forced text. The last of them may go on after its
    // end.
    virtual int n_agreeing(std::span<const Token> tokens) const = 0;
};

}  // namespace knap
