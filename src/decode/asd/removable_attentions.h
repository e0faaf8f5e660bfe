// Which attentions a draft can do without, by how little they change the direction of the residual
// stream (docs/methods.md, "ASD"). Arithmetic only.
#pragma once

#include <span>
#include <vector>

namespace knap {

// The first and the last layer keep their attention.
struct AttentionRule {
    float least_cosine = 0.99f;  // theta
    int max_run = 0;             // adjacent attentions removed, at most; 0: no limit
    int max_total = 0;           // attentions removed, at most; 0: no limit
};

// Returns the layers, ascending, whose cosine reaches the rule's. If a cap allows only some of
// them, those with the highest cosines are removed (of equals, the lower layer). `cosines`: of the
// streams before and after each layer's attention.
std::vector<int> removable_attentions(std::span<const double> cosines, const AttentionRule& rule);

}  // namespace knap
