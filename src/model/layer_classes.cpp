#include "model/layer_classes.h"

#include <algorithm>
#include <array>

#include "ggml.h"

#include "model/weights.h"

namespace knap {

namespace {

bool are_alike(const LayerWeights& a, const LayerWeights& b) {
    const auto are_like = [](const ggml_tensor* one, const ggml_tensor* other) {
        return one->type == other->type && ggml_are_same_shape(one, other);
    };
    return std::ranges::equal(matrices(a), matrices(b), are_like) &&
           std::ranges::equal(expert_matrices(a), expert_matrices(b), are_like);
}

}  // namespace

std::vector<int> classify_layers(const Weights& weights) {
    const std::vector<LayerWeights>& layers = weights.tensors().layers;
    std::vector<int> classes;
    int n_classes = 0;
    for (const LayerWeights& layer : layers) {
        const auto first = std::ranges::find_if(
            layers, [&](const LayerWeights& earlier) { return are_alike(earlier, layer); });
        const auto index = static_cast<std::size_t>(first - layers.begin());
        classes.push_back(index < classes.size() ? classes[index] : n_classes++);
    }
    return classes;
}

}  // namespace knap
