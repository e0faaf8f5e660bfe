// Prefetches the weights that come next, a little at every step of a product: to the CPU's second
// cache, which can wait for more lines at once than the first, or to the first.
#pragma once

#include <algorithm>
#include <cstddef>

namespace knap {
namespace {

template <typename Simd, bool ToFirst>
class Ahead {
  public:
    static constexpr std::size_t kNearest = 4 << 10;  // bytes; soon enough for a single pass

    // For a group of `n_bytes` that takes `n_steps` steps: fetches what lies `distance` ahead.
    Ahead(const std::byte* group, std::size_t n_bytes, std::size_t distance, int n_steps)
        : at_(group + std::min(n_bytes, distance)),
          end_(at_ + n_bytes),
          step_((n_bytes / static_cast<std::size_t>(n_steps) + kLine - 1) / kLine * kLine) {}

    void fetch() {
        if (at_ < end_) {
            for (std::size_t i = 0; i < step_; i += kLine) {
                if constexpr (ToFirst) {
                    Simd::prefetch(at_ + i);
                } else {
                    Simd::prefetch_to_second_cache(at_ + i);
                }
            }
            at_ += step_;
        }
    }

  private:
    static constexpr std::size_t kLine = 64;

    const std::byte* at_;
    const std::byte* end_;
    std::size_t step_;
};

}  // namespace
}  // namespace knap
