// Which attentions a draft can do without, by how little they turn the residual stream (methods 8).
// Arithmetic alone.
#pragma once

#include <span>
#include <vector>

namespace knap {

// First and last layer keep theirs.
struct AttentionRule {
    float least_cosine = 0.99f;  // theta
    int max_run = 0;             // neighbouring layers that lose theirs; 0: as many as qualify
    int max_total = 0;           // of the model; 0: as many as qualify
};

// Layers, ascending, whose cosine reaches the rule's; where a cap lets only some of them go, those
// of the highest cosine (of equal ones the lower layer). `cosines`: of the stream before and after
// each layer's attention.
std::vector<int> removable_attentions(std::span<const double> cosines, const AttentionRule& rule);

}  // namespace knap
