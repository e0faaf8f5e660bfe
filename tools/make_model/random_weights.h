// Random tensor values in their stored form. A value is a hash of seed, tensor name, row and
// column: rows can be made in any order, by any number of threads, and a layer does not depend on
// how many others there are.
//
// Quantising costs far more than copying, so matrices with rows of kMosaicRow values and more (the
// models of a billion parameters and up) are mosaics: each row is a random sequence of 256-value
// tiles from a pool that is quantised once per type and row length. Tiles recur, rows do not.
// Smaller matrices have every value of their own.
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

    // Writes rows of `tensor`, beginning with `first_row`, as a file stores them: as many as fit
    // `out`, whose size is a multiple of the row's. May be called from several threads at once.
    void fill_rows(const RandomTensor& tensor,
                   std::int64_t first_row,
                   std::span<std::byte> out) const;

  private:
    using PoolKey = std::pair<ggml_type, std::int64_t>;  // type, n_in
    using Pool = std::vector<std::byte>;                 // tiles, one after the other

    std::uint64_t seed_;
    std::map<PoolKey, Pool> pools_;
};

}  // namespace knap
