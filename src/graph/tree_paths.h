// The paths of a tree's rows, as numbers that our attention kernel reads while a graph runs.
//
// In plain decoding the rows of a path directly follow the context; in a tree they are scattered.
// The position of a row is its index in plain decoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "forward/attention_layout.h"

namespace knap {

class TreePaths {
  public:
    // The size of the description of any tree in a cache of `capacity` rows.
    static int n_numbers(int capacity) { return kHeader + capacity; }
    // Describes a pass from cache row `first_row` on with a tree as its layout.
    static void write(const AttentionLayout& layout,
                      int first_row,
                      std::span<std::int32_t> numbers);

    explicit TreePaths(std::span<const std::int32_t> numbers) : numbers_(numbers) {}

    int context() const { return numbers_[0]; }
    // The number of rows that a row of the pass attends to: the context and its path, itself
    // included.
    int n_seen(int row) const { return context() + tree_depth(parents(), node(row)) + 1; }
    // True if every row of the path is at its position in the cache.
    bool lies_in_place(int row) const { return n_seen(row) == context() + node(row) + 1; }

    // Calls visit(position, cache row) along the path of a row, from its end.
    template <typename Visit>
    void for_each(int row, Visit visit) const {
        int position = n_seen(row);
        for (int k = node(row); k >= 0; k = parents()[static_cast<std::size_t>(k)]) {
            visit(--position, context() + k);
        }
    }

  private:
    // The context and the node of the pass's first row; then the parent of every node.
    static constexpr int kHeader = 2;

    int node(int row) const { return numbers_[1] + row; }
    std::span<const int> parents() const { return numbers_.subspan(kHeader); }

    std::span<const std::int32_t> numbers_;
};

}  // namespace knap
