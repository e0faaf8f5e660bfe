// Finds the layers of a model that cost the same.
#pragma once

#include <vector>

namespace knap {

class Weights;

// [n_layers] the class of each layer, numbered from 0 in order of appearance. Layers of one class
// have matrices of the same types and shapes.
std::vector<int> classify_layers(const Weights& weights);

}  // namespace knap
