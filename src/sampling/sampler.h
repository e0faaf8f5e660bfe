// Chooses tokens from logits according to SamplingOptions. The choice depends only on the logits,
// the accepted tokens (if penalties are set), the seed, the position and the constraint.
//
// Speculation uses the parts: it extend()s the history by a row's ancestors, calls distribution()
// for the row, undoes the extension with rewind(), and then uses draw() or an acceptance rule.
//
// A constraint forbids tokens before bias, penalties and cuts, in plain decoding too (docs/
// methods.md, "Constrained output"). It stands at one place, the end of the text that is decided.
// Only choices of the whole model are made there: sample(), sample_with_gap() and
// allowed_distribution() obey it. Drafts are ahead of it and use the other functions, which do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "knap/types.h"

#include "sampling/distribution.h"
#include "sampling/draw_rule.h"
#include "sampling/logit_rows.h"
#include "sampling/noise.h"
#include "sampling/penalties.h"
#include "sampling/ranking.h"
#include "sampling/token_constraint.h"

namespace knap {

struct Choice {
    Token token;
    // By how much, in logits, it was preferred to the second choice; infinite when there is none.
    // At temperature 0, the difference of the two largest logits; otherwise the temperature times
    // the difference of the two largest log p + gumbel.
    float gap;
};

class Sampler {
  public:
    // Throws knap::Error when the options are invalid. `n_ctx` limits the penalty window; a
    // repeat_last_n of -1 means `n_ctx`.
    Sampler(const SamplingOptions& options, int n_vocab, int n_ctx);

    // The token at `position` (counted from the start of the conversation), from the logits
    // [n_vocab] of the row before it. Throws knap::Error when the row has no usable maximum
    // (row_maximum.h).
    Token sample(std::span<const float> logits, std::int64_t position);

    // The same as sample(), and measures the gap.
    Choice sample_with_gap(std::span<const float> logits, std::int64_t position);

    // How many of the best tokens of a row decide on sample() and the gap; 0: the row itself does.
    int n_best_needed() const;
    // The same from either. A row without logits has as many of its best tokens as needed.
    Token sample(const LogitRow& row, std::int64_t position);
    Choice sample_with_gap(const LogitRow& row, std::int64_t position);

    // The two halves of sample(). At temperature 0 the distribution has only the greedy choice.
    void distribution(std::span<const float> logits, Distribution& out);
    Token draw(const Distribution& distribution, std::int64_t position) const;

    // The distribution with the constraint.
    void allowed_distribution(std::span<const float> logits, Distribution& out);

    // The tokens of the text in order, including the prompt: the history for penalties. Those after
    // constrain() move the constraint.
    void accept(Token token);
    // The history for penalties alone, by tokens that may not stay.
    void extend(Token token);
    void rewind(std::size_t n_tokens);  // undoes the last extend()s

    // From here on only tokens that fit are chosen. The constraint stands after the accepted
    // tokens, and must outlive the sampler. Null: no constraint.
    void constrain(TokenConstraint* constraint) { constraint_ = constraint; }
    TokenConstraint* constraint() const { return constraint_; }
    // Whether a token that was decided has ended the text, so that none can be chosen.
    bool has_ended() const { return constraint_ != nullptr && constraint_->has_ended(); }
    // Whether the constraint allows the token next.
    bool fits(Token token) const { return constraint_ == nullptr || constraint_->fits(token); }
    // Moves the constraint past a token that is accept()ed later: a round decides on several tokens
    // one after the other, and all of them become text or the text ends.
    void decide(Token token);

    bool is_greedy() const { return !transform_.has_value(); }
    // True when the choice is the largest raw logit: greedy, without bias or penalties.
    bool takes_largest_logit() const { return is_greedy() && takes_raw_logits(); }
    // How a device draws the same from raw logits; nullopt with bias or penalties.
    std::optional<DrawRule> draw_rule() const;
    int n_vocab() const { return n_vocab_; }
    // The noise that draw() uses at a position.
    PositionNoise noise(std::int64_t position) const { return {rule_.seed, position}; }
    // The row with bias and penalties, which every choice starts from. Valid while `logits` is,
    // until the next call of any function that takes logits.
    std::span<const float> adjust(std::span<const float> logits);

  private:
    bool takes_raw_logits() const { return bias_.empty() && !window_; }
    // The choice from a row with bias and penalties, whatever the constraint.
    Token choose(std::span<const float> adjusted, std::int64_t position);
    Choice draw_with_gap(std::int64_t position);
    void advance_constraint(Token token);
    void distribute(std::span<const float> adjusted, Distribution& out);
    std::span<const float> allow(std::span<const float> adjusted, std::size_t n_best = 1);

    int n_vocab_;
    DrawRule rule_;
    std::size_t n_ranked_;  // with a temperature: how many of the largest logits count
    bool has_cuts_;         // so does a token's rank: top-k, top-p, min-p
    std::vector<std::pair<Token, float>> bias_;
    Penalties penalties_;
    std::optional<PenaltyWindow> window_;         // empty: no penalties
    std::optional<SamplingTransform> transform_;  // empty: greedy
    std::vector<float> adjusted_;  // [n_vocab], or empty while nothing changes logits
    Distribution drawn_from_;
    Ranking ranking_;
    std::vector<Draw> best_two_;
    TokenConstraint* constraint_ = nullptr;
    std::vector<Token> decided_;     // by decide() and not yet accepted
    std::vector<Token> candidates_;  // that the constraint is asked about
    std::vector<float> allowed_;     // [n_vocab], or empty while there is no constraint
};

// Extends a sampler's history temporarily. The destructor restores it, also after an exception.
class HistoryExtension {
  public:
    explicit HistoryExtension(Sampler& sampler) : sampler_(sampler) {}
    ~HistoryExtension() { sampler_.rewind(n_tokens_); }
    HistoryExtension(const HistoryExtension&) = delete;
    HistoryExtension& operator=(const HistoryExtension&) = delete;

    void accept(Token token) {
        sampler_.extend(token);
        ++n_tokens_;
    }

  private:
    Sampler& sampler_;
    std::size_t n_tokens_ = 0;
};

}  // namespace knap
