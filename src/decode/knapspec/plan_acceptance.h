// The acceptance of a plan's drafts, by position and by confidence. It starts as a belief, to which
// replays add (docs/methods.md, "Shrinkage" and "Replay"). Observed rounds soon outweigh both, and
// old rounds fade.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "sampling/stop_rule.h"
#include "search/throughput.h"

namespace knap {

class PlanAcceptance {
  public:
    explicit PlanAcceptance(const AcceptancePrior& belief) : belief_(belief) {}

    // What is believed before anything is seen of this plan.
    void believe(const AcceptancePrior& belief) { belief_ = belief; }
    // Adds a replay: `n_agreed` of `n_rows` rows.
    void replay(double n_agreed, double n_rows);
    // Records a round that drafted a chain of `n_drafted` tokens, of which the first `n_accepted`
    // were accepted. `confidences` are those of the drafts, or empty.
    void observe(int n_drafted, int n_accepted, std::span<const float> confidences);
    // Records whether the second candidate was right where the first was rejected.
    void observe_second(bool is_right) { seconds_.add(is_right); }

    double rate() const;  // of a draft at any position
    // Of second candidates, where the first was rejected.
    double rate_of_seconds() const;
    AcceptanceByDepth by_depth() const;
    std::array<double, MarginalRule::kBins> by_confidence() const;
    double n_observed() const { return total_.all; }  // drafts; old ones fade
    // All that was seen of this plan, without the belief; old drafts fade.
    AcceptancePrior evidence() const;
    // Another text begins: what was seen counts as `n_drafts` drafts, or fewer if there were fewer.
    void fade(double n_drafts);

  private:
    struct Count {
        double right = 0;
        double all = 0;

        void add(bool is_right);
        void limit(double weight);
        double shrunk(double rate, double weight) const;
    };

    AcceptancePrior belief_;
    Count replayed_;
    Count total_;
    std::vector<Count> by_depth_;
    std::array<Count, MarginalRule::kBins> by_confidence_{};
    Count seconds_;
};

}  // namespace knap
