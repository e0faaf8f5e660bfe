// The most recent committed tokens as the whole model sees them: what draft plans are held against.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

class Forward;
class KvCache;
class StreamBank;

// The r most recent committed tokens. Their streams X[i], f32 [n_embd, r] each, lie in one of two
// places.
struct TargetRows {
    int first_row = 0;                          // cache row (and position) of the first of them
    std::vector<Token> tokens{};                // [r]
    std::vector<std::vector<float>> streams{};  // [2L + 1]; or empty
    std::shared_ptr<const StreamBank> bank{};   // or they are its first rows, one after the other
    std::vector<float> logits{};                // [n_vocab, r]; or empty
    std::vector<Token> choices{};               // [r] argmax of the logits

    int n_rows() const { return static_cast<int>(tokens.size()); }
};

struct TargetRequest {
    int n_rows = 0;        // r, as far as target_rows_that_fit()
    bool streams = false;  // for the knapsack
    bool logits = false;   // for acceptance under sampling
    // Streams may stay on a device that has room for so many more of them; 0: they may not.
    std::size_t n_more_streams = 0;
};

// Rows that one pass can hold above the committed ones.
int scratch_rows(const Forward& forward, const KvCache& cache);
// r: so many of the `n_wanted` rows are committed and fit one pass of scratch rows.
int target_rows_that_fit(const Forward& forward, const KvCache& cache, int n_wanted);

// 2L + 1: the stream before every module, and after the last.
int count_streams(const Forward& forward);

// A bank on the device for the streams of `n_rows` rows and `n_more` streams of as many. Null where
// Forward::borrow_bank() gives none.
std::shared_ptr<const StreamBank> borrow_stream_bank(Forward& forward,
                                                     int n_rows,
                                                     std::size_t n_more);

// Computes them anew, with the whole model, in scratch rows. `text` begins with the committed rows'
// tokens. A result without tokens: cancelled, or no row fits.
TargetRows collect_target_rows(Forward& forward,
                               const KvCache& cache,
                               std::span<const Token> text,
                               const TargetRequest& request);

}  // namespace knap
