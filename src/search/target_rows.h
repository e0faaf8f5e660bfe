// The most recent committed tokens as the whole model computes them: draft plans are compared with
// these.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

class Forward;
class Sequence;
class StreamBank;

// The token that is taken from logits at `position`, that of the token. Empty: the argmax.
using TokenChoice = std::function<Token(int position, std::span<const float> logits)>;

// The choices from the logits [n_vocab, n_rows] of rows that begin at `first_row`.
std::vector<Token> choose_from(std::span<const float> logits,
                               std::size_t n_rows,
                               int first_row,
                               const TokenChoice& choose);

// r recent committed tokens. Their streams X[i], f32 [n_embd, r] each, are either in `streams` or
// in `bank`, or not known.
struct TargetRows {
    int first_row = 0;                          // cache row (and position) of the first token
    std::vector<Token> tokens{};                // [r]
    std::vector<std::vector<float>> streams{};  // [2L + 1] or empty
    std::shared_ptr<const StreamBank> bank{};   // its first rows are the streams, in order; or null
    std::vector<Token> choices{};               // [r] the token that the whole model chose after it

    int n_rows() const { return static_cast<int>(tokens.size()); }
};

struct TargetRequest {
    int n_rows = 0;        // r, limited by target_rows_that_fit()
    bool streams = false;  // for the knapsack
    // The streams may stay on a device that has room for this many more; 0: they may not.
    std::size_t n_more_streams = 0;
    TokenChoice choose{};
};

// The number of rows above the committed ones that a pass can use.
int scratch_rows(const Forward& forward, const Sequence& cache);
// r: at most `n_wanted`, the committed rows, and what one pass of scratch rows can hold.
int target_rows_that_fit(const Forward& forward, const Sequence& cache, int n_wanted);

// 2L + 1: the streams before every module and after the last one.
int count_streams(const Forward& forward);

// A bank on the device with room for the target's streams of `n_rows` rows and `n_more` streams of
// the same size. Null if Forward::borrow_bank() returns none.
std::shared_ptr<const StreamBank> borrow_stream_bank(Forward& forward,
                                                     int n_rows,
                                                     std::size_t n_more);

// Computes the target rows again with the whole model, in scratch rows, and chooses from its
// logits. `text` begins with the tokens of the committed rows. Returns a result without tokens when
// cancelled or if no row fits.
TargetRows collect_target_rows(Forward& forward,
                               const Sequence& cache,
                               std::span<const Token> text,
                               const TargetRequest& request);

// The last rows of an answer, up to `n_rows`. What the whole model chose after each of them is
// written, so no pass is needed; their streams are not known. `history` is the text with its
// pending token, and the answer begins at `n_prompt`. Without an answer there are none.
TargetRows written_rows(std::span<const Token> history, std::size_t n_prompt, int n_rows);

}  // namespace knap
