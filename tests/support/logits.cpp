#include "support/logits.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace knap::test {

Token argmax(std::span<const float> row) {
    return static_cast<Token>(std::max_element(row.begin(), row.end()) - row.begin());
}

float top_two_gap(std::span<const float> row) {
    const auto best = static_cast<std::size_t>(argmax(row));
    float second = -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < row.size(); ++i) {
        if (i != best) {
            second = std::max(second, row[i]);
        }
    }
    return row[best] - second;
}

float max_abs_difference(std::span<const float> a, std::span<const float> b) {
    if (a.size() != b.size()) {
        return std::numeric_limits<float>::infinity();
    }
    float most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const float difference = std::abs(a[i] - b[i]);
        most = difference <= most ? most : difference;  // a NaN wins and stays
    }
    return most;
}

}  // namespace knap::test
