// Divides the product of a matrix and the rows of a pass into items for the threads: some row
// groups of the matrix times some rows of the pass.
#pragma once

#include <algorithm>
#include <numeric>

#include "base/rounding.h"
#include "kernels/matmul/packed_matrix.h"

namespace knap {

// Heads are computed in units of as many as fill whole groups of matrix rows.
struct HeadUnits {
    explicit HeadUnits(int head_dim) : n_heads(kGroupRows / std::gcd(kGroupRows, head_dim)) {
        n_groups = n_heads * head_dim / kGroupRows;
    }
    int count(int n_all_heads) const { return steps_for(n_all_heads, n_heads); }

    int n_heads;
    int n_groups;
};

struct Tile {
    int first_unit = 0;
    int n_units = 0;
    int first_row = 0;
    int n_rows = 0;
};

class Tiles {
  public:
    // The most rows of a tile: their inputs and results stay in a core's cache.
    static constexpr int kMaxRows = 64;
    // Groups of gate and up in one tile.
    static constexpr int kMaxGateUnits = 8;

    // `n_units` pieces of a matrix, at most `max_units` of them to a tile.
    Tiles(int n_units, int n_rows, int n_threads, int max_units = kAnyUnits)
        : n_units_(n_units),
          n_rows_(n_rows),
          n_row_tiles_(steps_for(n_rows, kMaxRows)),
          tile_units_(std::clamp(n_units * n_row_tiles_ / (n_threads * kPerThread), 1, max_units)) {
    }

    int n_units() const { return tile_units_; }  // of every tile but the last
    int size() const { return steps_for(n_units_, tile_units_) * n_row_tiles_; }
    // Tiles of the same units follow each other, so that their weights stay in a core's cache.
    Tile operator[](int i) const {
        const int first_unit = i / n_row_tiles_ * tile_units_;
        const int first_row = i % n_row_tiles_ * kMaxRows;
        return {.first_unit = first_unit,
                .n_units = std::min(tile_units_, n_units_ - first_unit),
                .first_row = first_row,
                .n_rows = std::min(kMaxRows, n_rows_ - first_row)};
    }

  private:
    // Enough for one thread to help another, few enough not to be noticed.
    static constexpr int kPerThread = 8;
    static constexpr int kAnyUnits = 1 << 20;

    int n_units_;
    int n_rows_;
    int n_row_tiles_;
    int tile_units_;
};

}  // namespace knap
