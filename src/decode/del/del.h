// DEL, dynamic early exit (docs/methods.md, "DEL"): drafts leave the model after one of its layers,
// and every round chooses the layer anew. The shadow tokens of a layer, those that the model would
// choose if it ended there, come from streams that drafting and verification computed anyway, put
// through the head. DEL is made for checkpoints trained for early exits; in others, layers before
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

// What DEL needs from the model.
class ShadowSource {
  public:
    virtual ~ShadowSource() = default;
    // Returns the last rows of `text`, all of them committed, with their streams.
    virtual TargetRows last_rows(std::span<const Token> text, int n_rows) = 0;
    // Returns the head's choice for each row of `hidden` [n_embd, n_rows]; empty when cancelled.
    virtual std::vector<ShadowToken> read(std::span<const float> hidden) = 0;
};

class DelStrategy final : public Strategy {
  public:
    DelStrategy(const DelOptions& options,
                int n_layers,
                int n_embd,
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
    std::vector<int> captures_;  // after each layer but the last
    std::unique_ptr<ShadowSource> source_;

    // State of the current request.
    std::size_t n_prompt_ = 0;
    bool has_seen_prompt_ = false;
    ExitStatistics statistics_;
    ExitChoice choice_;
    ModulePlan plan_;
    std::vector<float> hidden_;  // streams not processed yet: [n_embd, n_rows, L - 1]
    std::vector<Token> target_;  // [n_rows] the whole model's choices there
    std::vector<Decision> decisions_;
};

std::unique_ptr<Strategy> build_del(const SpeculationOptions& options, const StrategyParts& parts);

}  // namespace knap
