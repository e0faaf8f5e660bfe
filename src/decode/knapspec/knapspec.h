// KnapSpec, extended (docs/methods.md, "KnapSpec, extended"). Before each round it chooses the
// draft source that is expected to write the most tokens per millisecond: a plan (plan_scout.h),
// tokens copied after a match in the text (copy_drafts.h), a copy that the plan checks and extends,
// or none. Predictions rest on measured costs (cost_learner.h) and on the acceptance seen so far; a
// budget pays for measuring more. Every round is compared with plain decoding, and a source that
// does not pay is suspended.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/knapspec/copy_drafts.h"
#include "decode/knapspec/cost_learner.h"
#include "decode/knapspec/decision_log.h"
#include "decode/knapspec/options.h"
#include "decode/knapspec/plan_scout.h"
#include "decode/knapspec/search_budget.h"
#include "decode/knapspec/source_rating.h"
#include "decode/strategy.h"

namespace knap {

class KnapspecStrategy final : public Strategy {
  public:
    KnapspecStrategy(const StrategyParts& parts, const KnapspecOptions& options);

    void begin(const RequestStart& request) override;
    Proposal propose(const RoundState& state) override;
    void observe(const RoundOutcome& outcome) override;
    bool use_idle_time(std::span<const Token> text) override;
    std::span<const Decision> decisions() const override { return log_.decisions(); }

  private:
    enum class DraftSource { plain, copy, plan, cascade };

    // Takes in what other sessions ask for. True: enough has changed to refresh.
    bool follow(const Load& load);
    void learn(const RoundState& state);
    // What may be spent to learn whether drafts can pay at all.
    double left_with_loan_ms(const RoundState& state) const;
    // Updates prices for the current context, and the plan that drafts while no copy is better.
    void refresh();
    Proposal choose(const RoundState& state);
    std::optional<Proposal> try_copy(const RoundState& state);
    std::vector<CopyNode> offer_copy(const RoundState& state, int max_nodes);
    SourceRating rate_cascade_of(std::span<const CopyNode> guess,
                                 int max_length,
                                 double rate) const;
    Proposal draft_copy(std::span<const CopyNode> nodes);
    Proposal draft_guess(const SourceRating& rating, std::span<const CopyNode> guess);
    Proposal draft_with_plan(const SourceRating& rating, std::span<const Token> guess);
    double row_ms(int length) const;
    double plain_ms() const { return round_cost_.verify_ms.front(); }
    MarginalRule marginal_rule(const SourceRating& rating) const;
    // The confidence above which a second candidate is not worth its row; 0: none is.
    double sure_enough(const SourceRating& rating) const;
    void log_choice();
    void record_round(const RoundOutcome& outcome);
    double expected_ms(const RoundOutcome& outcome) const;
    double expected_variance(const RoundOutcome& outcome) const;

    KnapspecOptions options_;
    CostLearner learner_;
    SearchBudget budget_;
    PlanScout scout_;
    CopyDrafts copies_;
    DecisionLog log_;
    bool may_branch_;  // plans may have second candidates

    // State of the current round.
    DraftSource source_ = DraftSource::plain;
    bool is_trial_ = false;  // a copy that is drafted to see what rows cost
    int n_context_ = 0;      // committed rows
    DraftTree copy_;
    double copy_variance_ = 0;  // of the round's number of tokens
    std::vector<Token> guess_;
    ModulePlan plan_;
    Token pending_ = 0;
    WidthStep single_;  // how sure a draft must be to have no second candidate

    std::vector<int> all_streams_;  // 0, 1, ..., 2L
    std::size_t n_prompt_ = 0;
    RoundCost round_cost_;  // without a plan, at the last refresh; without times: not known
    OtherWork others_;      // at the last refresh
    bool is_alone_ = true;  // no other session is being served
    int refresh_in_ = 0;    // rounds until the next refresh
};

std::unique_ptr<Strategy> build_knapspec(const SpeculationOptions& options,
                                         const StrategyParts& parts);

}  // namespace knap
