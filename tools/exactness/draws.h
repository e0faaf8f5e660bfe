// Draws that depend on a seed and nothing else: the same on every machine and with every library.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>

#include "base/hash.h"

namespace knap {

class Draws {
  public:
    explicit Draws(std::uint64_t seed) : seed_(seed) {}

    std::uint64_t number() { return mix_in(seed_, n_drawn_++); }
    int between(int least, int most) {  // both included
        const auto n_values = static_cast<std::uint64_t>(most - least) + 1;
        return least + static_cast<int>(number() % n_values);
    }
    bool one_in(int n) { return between(1, n) == 1; }
    template <typename T>
    T one_of(std::initializer_list<T> values) {
        return std::data(values)[between(0, static_cast<int>(values.size()) - 1)];
    }

  private:
    std::uint64_t seed_;
    std::uint64_t n_drawn_ = 0;
};

}  // namespace knap
