// Row indices for requests of passes.
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

namespace knap {

// 0, 1, 2, ...
inline std::vector<int> row_numbers(int n) {
    std::vector<int> numbers(static_cast<std::size_t>(n));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}

}  // namespace knap
