// CPU attention over the cached keys and values of one KV head. All query columns of the head (its
// query heads times the rows of a pass) share every read of the cache.
//
// The context is split into chunks at fixed positions. A chunk gives each column a partial result
// (weighted values, maximum score, sum of weights), and partials are merged in the order of their
// chunks. Within a chunk a column's arithmetic does not depend on the columns beside it, and hidden
// positions add exact zeros. So a column's result has the same bits whatever rows run with it and
// however threads share the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/isa.h"

namespace knap {

inline constexpr int kKeyTile = 16;     // positions whose keys are interleaved channel by channel
inline constexpr int kValueTile = 4;    // positions whose int8 values are interleaved
inline constexpr int kKeyOffset = 128;  // added to stored int8 keys
inline constexpr float kMostInt8 = 127.0f;
inline constexpr float kMostUint8 = 255.0f;
inline constexpr int kAttentionStep = 64;  // the number of positions is a multiple of this
inline constexpr int kAttentionChunk = 256;
inline constexpr int kMaxAttentionColumns = 48;  // in one call
inline constexpr int kMaxAttentionHeadDim = 256;
inline constexpr int kUnknownPrefix = -1;

// Positions count from the start of the chunk. Half-precision numbers are passed as their bits.
struct AttentionChunk {
    int head_dim;                       // a multiple of kKeyTile, at most kMaxAttentionHeadDim
    int n_columns;                      // at most kMaxAttentionColumns
    int n_positions;                    // a multiple of kAttentionStep, at most kAttentionChunk
    float scale;                        // of q k^T, above 0
    float soft_cap = 0;                 // c: scaled scores s become c tanh(s / c); 0: they do not
    const float* const* queries;        // per column f32 [head_dim]
    const std::uint16_t* const* masks;  // per column f16 [n_positions]: 0, or -inf where hidden
    float* const* partials;             // per column f32 [partial_size(head_dim)], overwritten
    // Per column: how many positions its mask shows, if those are the first ones; otherwise
    // kUnknownPrefix. Optional; saves reading the masks.
    const int* n_visible = nullptr;
};

// The rows that will be read next, for prefetching. Any address is safe.
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

// An int8 cache: numbers from -127 to 127, with one scale per position. Keys are interleaved by
// four channels and stored with kKeyOffset added; values are interleaved by four positions.
struct Int8Rows {
    const std::uint8_t* keys;           // [4, kKeyTile, head_dim / 4, n_positions / kKeyTile]
    const std::uint16_t* key_scales;    // f16 [n_positions]
    const std::int8_t* values;          // [kValueTile, head_dim, n_positions / kValueTile]
    const std::uint16_t* value_scales;  // f16 [n_positions]
    NextRows next{};
};

// A partial result: f32 [head_dim] weighted values, then the maximum score in base 2 (one more
// doubles a weight), then the sum of weights.
constexpr std::size_t partial_size(int head_dim) {
    return static_cast<std::size_t>(head_dim) + 2;
}

struct AttentionKernel {
    Isa isa;
    void (*run_chunk)(const AttentionChunk& chunk, const HalfRows& rows);
    void (*run_int8_chunk)(const AttentionChunk& chunk, const Int8Rows& rows);
    // Merges `partial` into `state`, both [partial_size(head_dim)]. clear_partial() initialises a
    // state.
    void (*merge)(int head_dim, float* state, const float* partial);
};

void clear_partial(int head_dim, float* state);
// A state that has seen one position with this score, already scaled, and no value.
void put_sink(int head_dim, float score, float* state);
// Divides the weighted values by the sum of weights: f32 [head_dim]. Zeros when the column attended
// to nothing.
void finish_partial(int head_dim, const float* state, float* out);

// Every kernel that may run on this machine, fastest first. The last is the plain reference.
std::span<const AttentionKernel> attention_kernels();
// True when the fastest of them is worth choosing over ggml's operators.
bool has_fast_attention();

}  // namespace knap
