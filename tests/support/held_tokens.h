// Which tokens a reduced head holds.
#pragma once

#include <vector>

#include "knap/types.h"

namespace knap {
class HeadSubset;
}

namespace knap::test {

// The token of each row in use, by where the row's logit goes.
std::vector<Token> held_tokens(const HeadSubset& subset, int n_vocab);

}  // namespace knap::test
