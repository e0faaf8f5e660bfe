// Whole numbers of steps.
#pragma once

namespace knap {

// How many steps hold `n` items.
template <typename Int>
constexpr Int steps_for(Int n, Int step) {
    return (n + step - 1) / step;
}

template <typename Int>
constexpr Int round_up(Int n, Int step) {
    return steps_for(n, step) * step;
}

template <typename Int>
constexpr Int round_down(Int n, Int step) {
    return n / step * step;
}

}  // namespace knap
