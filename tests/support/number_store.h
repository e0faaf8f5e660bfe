// A store whose rows are one number each: enough to see what was copied where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/kv_memory.h"

namespace knap::test {

class NumberStore final : public KvStore {
  public:
    explicit NumberStore(const PageShape& shape)
        : numbers(static_cast<std::size_t>(shape.page_rows * shape.n_pages)) {}

    LayerRange layers() const override { return {0, 1}; }
    std::size_t bytes() const override { return numbers.size() * sizeof(int); }
    void copy_rows(int from, int to, int n_rows) override {
        n_copied += n_rows;
        for (int i = 0; i < n_rows; ++i) {
            at(to + i) = at(from + i);
        }
    }
    bool copies_beside_passes() const override { return true; }
    std::size_t saved_row_bytes() const override { return sizeof(int); }
    std::uint64_t saved_format() const override { return 1; }
    void export_rows(int, std::span<const StoredRows>, std::byte*) const override {}
    void import_rows(int, std::span<const StoredRows>, const std::byte*) override {}

    int& at(int row) { return numbers[static_cast<std::size_t>(row)]; }

    std::vector<int> numbers;
    int n_copied = 0;
};

}  // namespace knap::test
