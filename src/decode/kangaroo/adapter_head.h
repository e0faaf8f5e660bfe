// A trained adapter as the head of drafts (docs/methods.md, "Kangaroo"), with its own cache. Its
// rows mirror those of the target, the whole model: row i belongs to the i-th token of the text and
// is computed from the target's stream of that token at the exit layer. Rows of a draft are scratch
// until the round has judged it. The adapter's rows belong to a session and outlast a change of
// strategy.
#pragma once

#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/strategy.h"
#include "forward/single_sequence.h"

namespace knap {

class Adapter;

// An adapter and what its passes need; everything referred to must outlive the head.
struct AdapterParts {
    const Adapter& adapter;
    std::span<const std::unique_ptr<DeviceModel>> devices;  // of its layer
    int capacity = 0;                                       // as many rows as the target's
    int n_ubatch = 0;
    PassRunner* turns = nullptr;  // of the target's passes; null: they never overlap
};

class AdapterHead final : public ExitHead {
  public:
    // Throws when there is no memory for its rows.
    explicit AdapterHead(const AdapterParts& parts);
    AdapterHead(const AdapterHead&) = delete;
    AdapterHead& operator=(const AdapterHead&) = delete;

    // Prepares for a draft after `text`, whose rows the target's cache has committed. Drops rows of
    // another text and computes missing ones: their tokens go through the target's first layers
    // again, in scratch rows, so the committed rows do not change. Returns false when cancelled, or
    // if no scratch row is free; a later call continues.
    bool follow(std::span<const Token> text, Forward& target, const Sequence& target_cache);

    // `first_row` must be where the text or the draft so far ends.
    std::span<const float> logits(std::span<const float> hidden, int first_row) override;

    // The text continues with `tokens`, which are the first of the draft. Rows that the draft
    // computed become final. The others wait for the first pass of the next draft, as `streams`:
    // the target's at the exit layer, [n_embd, n_tokens or more]. After a draft that was accepted
    // whole, the row of its last token waits.
    void accept(std::span<const Token> tokens, std::span<const float> streams);

    int exit_layer() const;
    const Sequence& cache() const { return cache_; }
    const Forward& forward() const { return forward_; }

  private:
    void keep_common_beginning(std::span<const Token> text);
    bool catch_up(std::span<const Token> text, Forward& target, const Sequence& target_cache);

    const Adapter& adapter_;
    SingleSequence rows_;
    Sequence& cache_;
    Forward& forward_;
    std::vector<Token> tokens_;   // of the final rows, then of the waiting ones
    std::vector<float> waiting_;  // streams [n_embd, n_waiting]
    int draft_end_ = 0;           // where the rows of the current draft end
    std::vector<float> hidden_;   // of a pass: [n_embd, n_rows]
    std::vector<int> logit_rows_;
};

}  // namespace knap
