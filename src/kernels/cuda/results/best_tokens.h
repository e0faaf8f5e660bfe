// The tokens with the largest logits of every row: what the host needs to choose exactly as it
// would from the whole row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/device_memory.h"
#include "sampling/ranking.h"

namespace knap {

inline constexpr int kBestThreads = 1024;
inline constexpr int kBestPerThread = 16;
// A row is divided among blocks. Each lists the best of its part.
inline constexpr int kBestPart = kBestThreads * kBestPerThread;

// How many tokens a list has room for: ties, and tokens that are larger only than those of other
// threads, may come to those that are asked for.
constexpr int best_room(int n_best) {
    return 2 * n_best + 32;
}
constexpr std::size_t best_lists(int n_vocab) {
    return static_cast<std::size_t>((n_vocab + kBestPart - 1) / kBestPart);
}
// Numbers of the lists of a row. Each begins with its length, kNoBest if a logit is NaN or
// +infinity. A list that is longer than its room has lost some.
inline constexpr std::uint64_t kNoBest = ~std::uint64_t{0};
constexpr std::size_t best_list_numbers(int n_vocab, int n_best) {
    return best_lists(n_vocab) * static_cast<std::size_t>(1 + best_room(n_best));
}

// Appends the tokens of a row's lists to `keys`: nothing if one of the lists is unusable.
inline void append_best(std::span<const std::uint64_t> lists,
                        int n_best,
                        std::vector<RankKey>& keys) {
    const auto room = static_cast<std::size_t>(best_room(n_best));
    const std::size_t n_before = keys.size();
    for (; !lists.empty(); lists = lists.subspan(1 + room)) {
        if (lists.front() > room) {
            keys.resize(n_before);
            return;
        }
        const auto listed = lists.subspan(1, static_cast<std::size_t>(lists.front()));
        keys.insert(keys.end(), listed.begin(), listed.end());
    }
}

// Fills the lists [n_rows][best_list_numbers()] of `logits` [n_rows][n_vocab]. `n_best` is at most
// kBestThreads.
void list_best_tokens(const float* logits,
                      int n_rows,
                      int n_vocab,
                      int n_best,
                      std::uint64_t* lists,
                      const CudaStream& stream);

}  // namespace knap
