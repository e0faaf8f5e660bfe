// A trained adapter as the head of a draft (methods 10), with a cache of its own. Its rows mirror
// the target's: row i is of the i-th token of the text, computed from the target's stream of that
// token at the exit layer. Rows of a draft are scratch until the round has judged it. It belongs to
// a session: what it knows of the text outlasts a change of strategy.
#pragma once

#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/strategy.h"
#include "graph/forward.h"
#include "kv/kv_cache.h"

namespace knap {

class Adapter;
class Backend;

// An adapter and what its passes need; all that is referred to outlives the head.
struct AdapterParts {
    const Adapter& adapter;
    Backend& backend;
    KvCacheOptions cache;  // with as many rows as the target's
    int n_ubatch = 0;
};

class AdapterHead final : public ExitHead {
  public:
    // Throws when there is no memory for its rows.
    explicit AdapterHead(const AdapterParts& parts);
    AdapterHead(const AdapterHead&) = delete;
    AdapterHead& operator=(const AdapterHead&) = delete;

    // A draft is about to follow `text`, whose rows are what the target's cache has committed. Rows
    // that the adapter lacks are computed: the tokens go through the target's first layers once
    // more, in scratch rows, which leaves the target's cache as it was. What is there of another
    // text is dropped. False: cancelled, or no scratch row is free; a later call goes on.
    bool follow(std::span<const Token> text, Forward& target, const KvCache& target_cache);

    // `first_row` goes on where the text or the draft so far ends.
    std::span<const float> logits(std::span<const float> hidden, int first_row) override;

    // The text goes on with `tokens`, which the draft began with. Their rows are final where the
    // draft computed them; the others wait as they are in `streams`, the target's at the exit layer
    // [n_embd, n_tokens or more], and go along with the next draft's first pass: after a draft that
    // was kept whole, that is the row of its last token.
    void accept(std::span<const Token> tokens, std::span<const float> streams);

    int exit_layer() const;
    const KvCache& cache() const { return cache_; }
    const Forward& forward() const { return forward_; }

  private:
    void keep_common_beginning(std::span<const Token> text);
    bool catch_up(std::span<const Token> text, Forward& target, const KvCache& target_cache);

    const Adapter& adapter_;
    KvCache cache_;
    Forward forward_;
    std::vector<Token> tokens_;   // of the final rows, then of those that wait
    std::vector<float> waiting_;  // streams [n_embd, n_waiting]
    int draft_end_ = 0;           // where the rows of the draft at hand end
    std::vector<float> hidden_;   // of a pass: [n_embd, n_rows]
    std::vector<int> logit_rows_;
};

}  // namespace knap
