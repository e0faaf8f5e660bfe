// Generates random tensor values in their stored form. A value is a hash of seed, tensor name, row
// and column. So rows can be generated in any order by any number of threads, and a layer does not
// depend on the number of layers.
//
// Quantising costs far more than copying. So matrices with rows of kMosaicRow values or more (in
// models of a billion parameters and up) are mosaics: each row is a random sequence of 256-value
// tiles from a pool that is quantised once per type and row length. Tiles repeat, rows do not. In
// smaller matrices every value is generated separately.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tools/make_model/random_tensors.h"

namespace knap {

class RandomWeights {
  public:
    static constexpr std::int64_t kMosaicRow = 2048;

    // Quantises the pools that `tensors` need.
    RandomWeights(std::uint64_t seed, const std::vector<RandomTensor>& tensors);

    // Writes rows of `tensor` from `first_row` on as a file stores them: as many as fit in `out`,
    // whose size is a multiple of the row size. Several threads may call it at once.
    void fill_rows(const RandomTensor& tensor,
                   std::int64_t first_row,
                   std::span<std::byte> out) const;

  private:
    using PoolKey = std::pair<ggml_type, std::int64_t>;  // type, n_in
    using Pool = std::vector<std::byte>;                 // tiles, contiguous

    std::uint64_t seed_;
    std::map<PoolKey, Pool> pools_;
};

}  // namespace knap
