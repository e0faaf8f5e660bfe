// The rotations of positions for our kernels (graph/rotation.h), computed by ggml, so that angles
// are exactly its own, when a position is first asked for.
#pragma once

#include <memory>
#include <vector>

#include "ggml.h"

#include "model/config.h"

namespace knap {

class Backend;

class RopeRows {
  public:
    // `divisors` are the model's frequency divisors, f32 [n_rot / 2] in host memory, or null. All
    // arguments must outlive the object.
    RopeRows(const RopeConfig& rope, ggml_tensor* divisors);
    ~RopeRows();

    // [n_rot]: the cosine and sine of each pair, in the places of the pair.
    const float* at(int position);
    std::size_t bytes() const;

  private:
    static constexpr int kBlock = 256;  // positions that are computed together
    using Block = std::vector<float>;   // [n_rot, kBlock]
    Block compute(int first) const;

    const RopeConfig& rope_;
    ggml_tensor* divisors_;
    std::unique_ptr<Backend> backend_;  // with the calling thread alone
    std::vector<Block> blocks_;         // empty until needed
};

}  // namespace knap
