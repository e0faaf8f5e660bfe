// The continuations that are most likely to be right, as a tree whose nodes are in the order of the
// probability that they are accepted. Any number of the first nodes is a tree too, so the cost of
// rows decides how many are drafted (docs/methods.md, "Copies that learn"). Arithmetic only.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/copies/copied_texts.h"
#include "decode/copies/copy_acceptance.h"
#include "sampling/draft_tree.h"

namespace knap {

struct CopyNode {
    Token token = 0;
    int parent = kPendingNode;
    double reached = 0;  // the probability that it and all before it on its path are right
};

struct CopyTreeLimits {
    int max_nodes = 0;
    std::size_t width = 1;     // candidates at a position
    double least_reached = 0;  // less likely nodes are left out
};

// `next` says how often the first token is right, `later` how often those after it are.
std::vector<CopyNode> grow_copy_tree(std::span<const Match> matches,
                                     const CopyAcceptance& next,
                                     const CopyAcceptance& later,
                                     const CopyTreeLimits& limits);

}  // namespace knap
