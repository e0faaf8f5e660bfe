#include "graph/tree_paths.h"

#include <algorithm>

#include "base/error.h"

namespace knap {

void TreePaths::write(const AttentionLayout& layout,
                      int first_row,
                      std::span<std::int32_t> numbers) {
    KNAP_ASSERT(layout.kind == AttentionLayout::Kind::tree &&
                    kHeader + layout.parents.size() <= numbers.size(),
                "a tree that fits the cache");
    numbers[0] = layout.context;
    numbers[1] = first_row - layout.context;
    std::copy(layout.parents.begin(), layout.parents.end(), numbers.begin() + kHeader);
}

}  // namespace knap
