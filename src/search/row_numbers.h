// Rows as passes are told of them.
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

namespace knap {

// first, first + 1, ...
inline std::vector<int> row_numbers(std::size_t n, int first = 0) {
    std::vector<int> numbers(n);
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
}

}  // namespace knap
