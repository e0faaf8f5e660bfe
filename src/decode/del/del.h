// DEL, dynamic early exit (methods 6): drafts leave the model after one of its layers, and every
// round says anew after which. What each layer would have said behind the rows of a round (its
// shadow tokens) comes from the streams that drafting and verification computed anyway, put through
// the head. Made for checkpoints that were trained to be left early; on others the layers before
// the last hardly agree with it. Nothing is carried from request to request.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "decode/del/exit_statistics.h"
#include "decode/del/options.h"
#include "decode/strategy.h"
#include "search/target_rows.h"

namespace knap {

// What DEL asks of the model.
class ShadowSource {
  public:
    virtual ~ShadowSource() = default;
    // The last rows of `text`, all committed, with their streams.
    virtual TargetRows last_rows(std::span<const Token> text, int n_rows) = 0;
    // What the head says to each row of `hidden` [n_embd, n_rows]. Empty: cancelled.
    virtual std::vector<ShadowToken> read(std::span<const float> hidden) = 0;
};

class DelStrategy final : public Strategy {
  public:
    DelStrategy(const DelOptions& options,
                int n_layers,
                int n_embd,
                int n_vocab,
                std::unique_ptr<ShadowSource> source);

    void begin(const RequestStart& request) override;
    Proposal propose(const RoundState& state) override;
    void observe(const RoundOutcome& outcome) override;
    std::span<const Decision> decisions() const override { return decisions_; }

  private:
    void learn(std::span<const Token> history);
    void keep_prompt(std::span<const Token> committed);
    void choose(int n_answered);
    StopRule stop_rule(int n_room) const;

    DelOptions options_;
    int n_layers_;
    std::size_t n_embd_;
    std::size_t n_vocab_;
    std::vector<int> captures_;  // after each layer but the last
    std::unique_ptr<ShadowSource> source_;

    // Of the request at hand.
    std::size_t n_prompt_ = 0;
    bool has_seen_prompt_ = false;
    ExitStatistics statistics_;
    ExitChoice choice_;
    ModulePlan plan_;
    std::vector<float> hidden_;  // streams not yet looked at: [n_embd, n_rows, L - 1]
    std::vector<Token> target_;  // [n_rows] what the whole model said there
    std::vector<Decision> decisions_;
};

std::unique_ptr<Strategy> build_del(const SpeculationOptions& options, const StrategyParts& parts);

}  // namespace knap
