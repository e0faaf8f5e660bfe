#include "sampling/overlap.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace knap {

double overlap(const Distribution& p, const Distribution& q) {
    std::unordered_map<Token, float> of_p;
    of_p.reserve(p.tokens.size());
    for (std::size_t i = 0; i < p.tokens.size(); ++i) {
        of_p.emplace(p.tokens[i], p.probabilities[i]);
    }
    double sum = 0;
    for (std::size_t i = 0; i < q.tokens.size(); ++i) {
        if (const auto found = of_p.find(q.tokens[i]); found != of_p.end()) {
            sum += std::min(found->second, q.probabilities[i]);
        }
    }
    return std::min(sum, 1.0);
}

}  // namespace knap
