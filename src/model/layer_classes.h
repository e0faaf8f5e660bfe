// Which layers of a model cost the same.
#pragma once

#include <vector>

namespace knap {

class Weights;

// [n_layers] class of each layer, counted from 0 in the order of appearance: layers of one class
// have matrices of the same types and shapes.
std::vector<int> classify_layers(const Weights& weights);

}  // namespace knap
