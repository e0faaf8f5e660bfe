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

#include "kernels/isa.h"

namespace knap {

inline constexpr int kKeyTile = 16;     // positions whose keys lie together, channel by channel
inline constexpr int kValueTile = 4;    // positions whose int8 values do
inline constexpr int kKeyOffset = 128;  // of stored int8 keys
inline constexpr float kMostInt8 = 127.0f;
inline constexpr float kMostUint8 = 255.0f;
inline constexpr int kAttentionStep = 64;  // positions come in multiples of this
inline constexpr int kAttentionChunk = 256;
inline constexpr int kMaxAttentionColumns = 48;  // of one call
inline constexpr int kMaxAttentionHeadDim = 256;

// Positions count from the beginning of the chunk. Half-precision numbers are given as their bits.
struct AttentionChunk {
    int head_dim;                 // a multiple of kKeyTile, at most kMaxAttentionHeadDim
    int n_columns;                // at most kMaxAttentionColumns
    int n_positions;              // a multiple of kAttentionStep, at most kAttentionChunk
    float scale;                  // of q k^T, above 0
    const float* const* queries;  // per column f32 [head_dim]
    const std::uint16_t* const*
        masks;               // per column f16 [n_positions]: 0, or -infinity where hidden
    float* const* partials;  // per column f32 [partial_size(head_dim)], overwritten
};

// The rows that will be read after these: they are brought nearer meanwhile. Any address will do.
struct NextRows {
    const void* keys = nullptr;
    const void* values = nullptr;
    std::ptrdiff_t bytes = 0;  // of each
};

// An f16 cache.
struct HalfRows {
    const std::uint16_t* keys;    // f16 [kKeyTile, head_dim, n_positions / kKeyTile]
    const std::uint16_t* values;  // f16 [head_dim, n_positions]
    NextRows next{};
};

// An int8 cache: numbers from -127 to 127 with a scale for every position. Four channels of a key
// lie together, and are stored with kKeyOffset added; four positions of a value's channel do.
struct Int8Rows {
    const std::uint8_t* keys;           // [4, kKeyTile, head_dim / 4, n_positions / kKeyTile]
    const std::uint16_t* key_scales;    // f16 [n_positions]
    const std::int8_t* values;          // [kValueTile, head_dim, n_positions / kValueTile]
    const std::uint16_t* value_scales;  // f16 [n_positions]
    NextRows next{};
};

// A partial result: f32 [head_dim] weighted values, then the maximum score, in units of which each
// doubles a weight, and the sum of weights.
constexpr std::size_t partial_size(int head_dim) {
    return static_cast<std::size_t>(head_dim) + 2;
}

struct AttentionKernel {
    Isa isa;
    void (*run_chunk)(const AttentionChunk& chunk, const HalfRows& rows);
    void (*run_int8_chunk)(const AttentionChunk& chunk, const Int8Rows& rows);
    // state <- state merged with partial, both [partial_size(head_dim)]; a state begins with
    // clear_partial().
    void (*merge)(int head_dim, float* state, const float* partial);
};

void clear_partial(int head_dim, float* state);
// Divides the weighted values by the sum of weights: f32 [head_dim]. Zeros when the column saw
// nothing.
void finish_partial(int head_dim, const float* state, float* out);

// Every kernel that may run on this machine, the fastest first; the last is the plain reference.
std::span<const AttentionKernel> attention_kernels();
// Whether the fastest of them is worth choosing over ggml's operators.
bool has_fast_attention();

}  // namespace knap
