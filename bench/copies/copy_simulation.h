// What copies would have saved on a known text, counted in passes: whatever is drafted, the text
// stays the same, so its rounds can be replayed without a model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/copies/copy_tree.h"

namespace knap::bench {

struct CopyCounts {
    int n_tokens = 0;  // written after the first of each answer, which comes from the prompt's pass
    int n_passes = 0;  // of the whole model
    int n_rows = 0;    // of drafts
    int n_accepted = 0;

    void operator+=(const CopyCounts& other) {
        n_tokens += other.n_tokens;
        n_passes += other.n_passes;
        n_rows += other.n_rows;
        n_accepted += other.n_accepted;
    }
    double tokens_per_pass() const { return static_cast<double>(n_tokens) / n_passes; }
    double accepted() const { return n_rows > 0 ? static_cast<double>(n_accepted) / n_rows : 0; }
    // Over plain decoding, if every further row costs `row_price` of a step.
    double speed(double row_price) const { return n_tokens / (n_passes + row_price * n_rows); }
};

// How many tokens of `draft` are accepted where the text goes on with `rest`.
inline int count_accepted(std::span<const CopyNode> draft, std::span<const Token> rest) {
    int last = kPendingNode;
    std::size_t n = 0;
    for (int node = 0; node < static_cast<int>(draft.size()) && n < rest.size(); ++node) {
        const CopyNode& next = draft[static_cast<std::size_t>(node)];
        if (next.parent == last && next.token == rest[n]) {
            last = node;
            ++n;
        }
    }
    return static_cast<int>(n);
}

// Drafts for the text so far, of up to `max_nodes` tokens.
using DraftCopy =
    std::function<std::vector<CopyNode>(std::span<const Token> history, int max_nodes)>;

// The rounds that write `text` after its first `n_prompt` tokens.
inline CopyCounts simulate_copies(std::span<const Token> text,
                                  std::size_t n_prompt,
                                  int max_nodes,
                                  const DraftCopy& draft) {
    CopyCounts counts;
    std::size_t n_written = n_prompt + 1;
    while (n_written < text.size()) {
        const auto rest = text.subspan(n_written);
        // A round emits one token more than it accepts.
        const int n_room = std::min(max_nodes, static_cast<int>(rest.size()) - 1);
        const std::vector<CopyNode> copy = draft(text.first(n_written), n_room);
        const int n_accepted = count_accepted(copy, rest);
        n_written += static_cast<std::size_t>(n_accepted) + 1;
        counts += {.n_tokens = n_accepted + 1,
                   .n_passes = 1,
                   .n_rows = static_cast<int>(copy.size()),
                   .n_accepted = n_accepted};
    }
    return counts;
}

}  // namespace knap::bench
