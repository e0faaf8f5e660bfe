// What the CUDA kernels are asked for: a pass as data. All pointers are to the device's memory,
// unless they say otherwise. These structs are shared by host and device and hold no CUDA types.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"

#include "base/host_device.h"
#include "kernels/cuda/cache_pages.h"
#include "sampling/draw_rule.h"
#include "sampling/stop_rule.h"

namespace knap {

inline constexpr int kMaxStepRows = 16;  // rows of a pass in the one persistent kernel
inline constexpr int kMaxListed = 1024;  // tokens of a row that may be drawn

// Calls a macro with every size of heads that has kernels.
#define KNAP_HEAD_SIZES(CALL) CALL(64) CALL(96) CALL(128) CALL(256)

// Query heads times rows that share keys and values, at once.
constexpr int max_cuda_columns(int head_dim) {
    return head_dim == 64 || head_dim == 128 ? 32 : 16;
}

// A matrix in strips, with what is added to its products; null: nothing.
struct CudaMatrix {
    const std::uint8_t* strips = nullptr;
    const float* bias = nullptr;
    int n_strips = 0;
    std::int16_t n_units = 0;  // of a strip
    std::int16_t type = 0;     // ggml_type
};

// One part of a pass. All blocks of the kernel finish it before any begins the next, unless it says
// that they need not.
struct alignas(16) CudaPhase {
    enum class Op : std::int16_t {
        embed,    // tokens to streams
        take,     // streams are set: gives the inputs of the first product
        heads,    // queries, keys and values of all rows, not yet rotated
        store,    // keys and values to the cache, without attention
        attend,   // keys and values to the cache, and attention
        add,      // a product, added to the streams: attention's output, or `down`
        gate,     // gate and up
        capture,  // copies the streams
        head,     // logits
        choose,   // the best token of every row, and its probability
        list,     // the tokens of every row that may be drawn
        draw,     // one of them, for every row
    };
    Op op = Op::embed;
    std::int16_t layer = 0;       // of CudaModel::layers
    std::int16_t group = 0;       // attention: which plan of attention; capture: which one
    bool waits = true;            // all blocks finish it before the next begins
    bool gives_halves = false;    // the next product takes floats, not int8 blocks
    const float* norm = nullptr;  // weights of the norm before the next product; null: no product
    CudaMatrix parts[3];          // q, k, v; gate, up; or one
};

struct CudaLayer {
    const float* q_norm = nullptr;  // null: none
    const float* k_norm = nullptr;
    // [page][KV head][kCudaPageRows], each of head_dim numbers or of scale_places() scales, which
    // are null for f16.
    std::uint8_t* keys = nullptr;
    std::uint8_t* values = nullptr;
    std::uint16_t* key_scales = nullptr;
    std::uint16_t* value_scales = nullptr;
};

// Constant for a model.
struct CudaShape {
    int n_embd = 0;
    int n_heads = 0;
    int n_kv_heads = 0;
    int head_dim = 0;
    int n_ff = 0;
    int n_vocab = 0;
    int n_rot = 0;
    bool rotates_halves = false;  // else neighbours
    float rms_eps = 0;
    float attention_scale = 0;
    bool has_int8_keys = false;  // in the cache; else f16
    bool has_int8_values = false;
    const CudaLayer* layers = nullptr;
    CudaMatrix embedding;

    KNAP_HOST_DEVICE int n_q() const { return n_heads * head_dim; }
    KNAP_HOST_DEVICE int n_kv() const { return n_kv_heads * head_dim; }
    KNAP_HOST_DEVICE bool has_int8_cache() const { return has_int8_keys || has_int8_values; }
};

// A run of rows that some rows attend to: those from `row` of the sequence on stand at `position`
// and following in the order of summation, up to the position of the next run.
struct CudaRun {
    int position = 0;
    int row = 0;
};

// Rows of one sequence that attend alike, over some parts of the context.
struct CudaBlock {
    int first_row = 0;  // of the pass
    int n_rows = 0;     // times the query heads of a KV head at most max_cuda_columns(), in a step
    int first_part = 0;
    int end_part = 0;
    int first_page = 0;  // in CudaPassData::pages
    int first_run = 0;   // in CudaAttention::runs
    int n_runs = 0;
    int first_new = 0;     // positions from here on may be rows of this pass
    int first_stored = 0;  // the rows of the pass to store: those of the sequence
    int n_stored = 0;
};

struct CudaRow {
    int token = 0;
    int stored = 0;  // row of the cache
};

// One plan of attention: full, or a window.
struct CudaAttention {
    const CudaBlock* blocks = nullptr;
    int n_blocks = 0;
    const CudaRun* runs = nullptr;  // of all blocks
    bool merges = false;            // some row attends to several parts
    const int* n_seen = nullptr;    // [n_rows] positions that a row sees
};

inline constexpr int kMaxCudaAttentions = 8;

// How rows draw their tokens, and when a chain ends by itself.
struct CudaDraw {
    DrawRule rule{};
    std::int64_t first_position = 0;  // of the token that the first row draws
    ConfidenceOf confidence_of = ConfidenceOf::drafted;
    bool stops = false;  // before the last step, where `stop` says so
    StopState stop{StopRule{}};
};

// What a block has drawn from its part of the vocabulary.
struct CudaDrawn {
    double ratio = 0;       // probability over noise, of
    double sum = 0;         // of all weights
    std::uint64_t key = 0;  // a RankKey
};

// The streams and what passes between products. Memory for `max_rows` rows.
struct CudaBuffers {
    float* stream = nullptr;    // [n_rows][n_embd]
    float* heads = nullptr;     // [n_rows][n_q + 2 n_kv]
    float* partials = nullptr;  // [n_rows][n_heads][max_parts][head_dim + 2]
    int max_parts = 0;
    // Inputs of products. int8: codes [n_in / 64][stride][64] in the order of fragments, and for
    // each block of 32 inputs its scale and its scale times the sum of its codes, [n_in /
    // 32][stride][2]. Floats: [n_rows][n_in]. Two of each: the inputs of `down` are written while
    // those of gate and up are read.
    std::int8_t* codes[2] = {};
    float* scales[2] = {};
    float* floats[2] = {};
    // Passes of many rows: inputs rounded to 16 bits, [n_in / 64][stride][64], and a norm's
    // factors.
    std::uint16_t* halves = nullptr;
    float* factors = nullptr;         // [stride]
    float* squares = nullptr;         // [n_embd / 32][stride] sums of squares of the stream
    float* logits = nullptr;          // [n_rows][n_vocab]
    float* best = nullptr;            // [n_blocks][n_rows][4]: value, token, sum of exponentials
    std::int32_t* choices = nullptr;  // [n_steps or n_rows]
    float* probabilities = nullptr;   // likewise
    float* captures = nullptr;        // [n_captures][n_rows or n_steps][n_embd]
    unsigned* barrier = nullptr;      // [2] blocks that have arrived, blocks that have left
    std::uint64_t* listed = nullptr;  // [kMaxStepRows][kMaxListed] RankKeys
    int* n_listed = nullptr;          // [kMaxStepRows]; 0 between steps
    CudaDrawn* drawn = nullptr;       // [n_blocks][kMaxStepRows]
    int* n_done = nullptr;            // [1] steps of a chain that has ended; 0 before
};

struct CudaPassData {
    // What the step kernel copies to its shared memory: phases first, then everything but pages and
    // logit rows.
    std::size_t n_shared_bytes = 0;
    const CudaPhase* phases = nullptr;
    int n_phases = 0;
    int n_rows = 0;
    int n_steps = 1;  // of a chain: every row but the first is chosen on the device
    const CudaLayer* layers = nullptr;
    const CudaRow* rows = nullptr;  // [n_rows], or [n_steps] of a chain
    const float* turns = nullptr;   // [n_rows or n_steps][n_rot]
    const int* pages = nullptr;
    // Rows that get logits, in the order of CudaBuffers::logits. Only passes of more than
    // kMaxStepRows rows choose: others give them to all.
    const int* logit_rows = nullptr;
    int n_logit_rows = 0;
    CudaAttention attentions[kMaxCudaAttentions];
    CudaDraw draw{};
};

// Positions are attended to in parts, which depend on nothing but the position.
// The first position of a part.
KNAP_HOST_DEVICE constexpr int part_begin(int part) {
    int begin = 0;
    int end = 4096;
    int step = 256;
    for (int i = 0; i < 3; ++i) {
        const int n = (end - begin) / step;
        if (part < n) {
            return begin + part * step;
        }
        part -= n;
        begin = end;
        end *= 4;
        step *= 2;
    }
    return begin + part * step;
}

// The number of parts that hold the first `n` positions.
KNAP_HOST_DEVICE constexpr int count_parts(int n) {
    int begin = 0;
    int end = 4096;
    int step = 256;
    int count = 0;
    for (int i = 0; i < 3; ++i) {
        if (n <= end) {
            return count + (n - begin + step - 1) / step;
        }
        count += (end - begin) / step;
        begin = end;
        end *= 4;
        step *= 2;
    }
    return count + (n - begin + step - 1) / step;
}

}  // namespace knap
