// The mask of a block of ggml's attention: which of the cache rows that it reads each of its rows
// attends to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "forward/attention_blocks.h"
#include "forward/attention_layout.h"

namespace knap {

// The mask value that hides a row: the bits of f16 -infinity.
inline constexpr std::uint16_t kHiddenBits = 0xfc00;

// Writes the mask of one block, f16 bits [n_kv, n_mask_rows()]: 0 where a row may attend, -infinity
// elsewhere. A cache row that is in both runs of the block is visible in only one of them.
void build_mask(const AttentionLayout& layout,
                int first_row,
                const AttentionScope& scope,
                const AttentionBlock& block,
                std::span<std::uint16_t> mask);

}  // namespace knap
