// Prefetches the weights that come next, a little at every step of a product: to the CPU's second
// cache, which can wait for more lines at once than the first, or to the first. Behind the last
// group of a product that is what its thread reads after it, if the caller knows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace knap {
namespace {

template <typename Simd, bool ToFirst>
class Ahead {
  public:
    // Bytes; soon enough for a single pass. A fetch to the second cache often waits for the memory:
    // with 8 KB instead of 4, passes of four to six rows of the default model took 0.91 to 0.99 of
    // the time on Zen 5.
    static constexpr std::size_t kNearest = ToFirst ? 4 << 10 : 8 << 10;

    // For a group of `n_bytes` that takes `n_steps` steps: fetches what lies `distance` ahead, or
    // the rest of the group and then all of `next`, unless that is empty.
    Ahead(const std::byte* group,
          std::size_t n_bytes,
          std::size_t distance,
          int n_steps,
          std::span<const std::byte> next)
        : at_(group + std::min(n_bytes, distance)),
          end_(next.empty() ? at_ + n_bytes : group + n_bytes),
          next_(next.data()),
          next_end_(next.data() + next.size()) {
        const std::size_t n_all = static_cast<std::size_t>(end_ - at_) + next.size();
        step_ = (n_all / static_cast<std::size_t>(n_steps) + kLine - 1) / kLine * kLine;
    }

    void fetch() {
        if (at_ >= end_) {
            at_ = next_;
            end_ = next_end_;
            next_ = next_end_;
            if (at_ == end_) {
                return;
            }
        }
        for (std::size_t i = 0; i < step_; i += kLine) {
            if constexpr (ToFirst) {
                Simd::prefetch(at_ + i);
            } else {
                Simd::prefetch_to_second_cache(at_ + i);
            }
        }
        at_ += step_;
    }

  private:
    static constexpr std::size_t kLine = 64;

    const std::byte* at_;
    const std::byte* end_;
    const std::byte* next_;
    const std::byte* next_end_;
    std::size_t step_;
};

}  // namespace
}  // namespace knap
