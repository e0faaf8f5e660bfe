#include "decode/asd/removable_attentions.h"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace knap {

namespace {

// The inner layers whose cosine reaches `least`, the highest first.
std::vector<int> by_cosine(std::span<const double> cosines, float least) {
    const auto cosine_of = [&](int layer) { return cosines[static_cast<std::size_t>(layer)]; };
    std::vector<int> layers;
    for (int layer = 1; layer < static_cast<int>(cosines.size()) - 1; ++layer) {
        if (cosine_of(layer) >= static_cast<double>(least)) {
            layers.push_back(layer);
        }
    }
    std::ranges::stable_sort(layers, std::ranges::greater{}, cosine_of);
    return layers;
}

// Length of the run of adjacent layers without attention if `layer` lost its own too.
int run_through(const std::vector<bool>& is_removed, int layer) {
    const auto n_from = [&](int step) {
        int n = 0;
        for (int next = layer + step; is_removed[static_cast<std::size_t>(next)]; next += step) {
            ++n;
        }
        return n;
    };
    // The outer layers keep their attention, so they end every run.
    return n_from(-1) + 1 + n_from(1);
}

}  // namespace

std::vector<int> removable_attentions(std::span<const double> cosines, const AttentionRule& rule) {
    std::vector<bool> is_removed(cosines.size());
    std::vector<int> removed;
    for (const int layer : by_cosine(cosines, rule.least_cosine)) {
        const bool has_room =
            rule.max_total == 0 || static_cast<int>(removed.size()) < rule.max_total;
        if (has_room && (rule.max_run == 0 || run_through(is_removed, layer) <= rule.max_run)) {
            is_removed[static_cast<std::size_t>(layer)] = true;
            removed.push_back(layer);
        }
    }
    std::ranges::sort(removed);
    return removed;
}

}  // namespace knap
