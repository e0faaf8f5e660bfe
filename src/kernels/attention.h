// Attention over one KV head's cached keys and values, for the CPU. All query columns of the head
// (its query heads times the rows of a pass) share every read of the cache.
//
// The context is cut into chunks of fixed positions. A chunk gives each column a partial result
// (weighted values, maximum score, sum of weights); partials are merged in the order of their
// chunks. Within a chunk a column's arithmetic does not depend on the columns beside it, and
// positions that a column may not see add exact zeros. So a column's result has the same bits
// whatever rows run with it and however threads share the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace knap {

inline constexpr int kKeyTile = 16;        // positions whose keys lie together, channel by channel
inline constexpr int kAttentionStep = 64;  // positions come in multiples of this
inline constexpr int kAttentionChunk = 256;
inline constexpr int kMaxAttentionColumns = 48;  // of one call

// Half-precision numbers are given as their bits. Positions count from the beginning of the chunk.
struct AttentionChunk {
    int head_dim;                       // a multiple of kKeyTile
    int n_columns;                      // at most kMaxAttentionColumns
    int n_positions;                    // a multiple of kAttentionStep, at most kAttentionChunk
    float scale;                        // of q k^T
    const float* const* queries;        // per column f32 [head_dim]
    const std::uint16_t* keys;          // f16 [kKeyTile, head_dim, n_positions / kKeyTile]
    const std::uint16_t* values;        // f16 [head_dim, n_positions]
    const std::uint16_t* const* masks;  // per column f16 [n_positions], added to the scores
    float* const* partials;             // per column f32 [partial_size(head_dim)], overwritten
};

// A partial result: f32 [head_dim] weighted values, then the maximum score and the sum of weights.
constexpr std::size_t partial_size(int head_dim) {
    return static_cast<std::size_t>(head_dim) + 2;
}

struct AttentionKernel {
    const char* name;  // "avx512", "avx2", "plain"
    void (*run_chunk)(const AttentionChunk& chunk);
    // state <- state merged with partial, both [partial_size(head_dim)]; a state begins with
    // clear_partial().
    void (*merge)(int head_dim, float* state, const float* partial);
};

void clear_partial(int head_dim, float* state);
// Divides the weighted values by the sum of weights: f32 [head_dim]. Zeros when the column saw
// nothing.
void finish_partial(int head_dim, const float* state, float* out);

// Every kernel that this machine can run, the fastest first; the last is the plain reference.
std::span<const AttentionKernel> attention_kernels();
// Whether the fastest of them is worth choosing over ggml's operators.
bool has_fast_attention();

}  // namespace knap
