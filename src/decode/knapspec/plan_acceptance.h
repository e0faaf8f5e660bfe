// What is believed and known of a plan's drafts: the acceptance by position and by confidence.
// Beliefs come from replay or from earlier runs (methods 3.15 O4, 3.19); what rounds show outweighs
// them soon, and old rounds fade.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "decode/stop_rule.h"
#include "search/throughput.h"

namespace knap {

class PlanAcceptance {
  public:
    explicit PlanAcceptance(const AcceptancePrior& belief) : belief_(belief) {}

    // Replaces the belief: `agreed` of `n_rows` replayed rows, drawn towards what was believed.
    void replay(double agreed, int n_rows);
    // A round drafted `n_drafted` tokens in a row and kept the first `n_accepted`; confidences of
    // the drafts, or none.
    void observe(int n_drafted, int n_accepted, std::span<const float> confidences);

    double rate() const;  // of a draft, all positions together
    AcceptanceByDepth by_depth() const;
    std::array<double, MarginalRule::kBins> by_confidence() const;
    double n_observed() const { return total_.all; }  // drafts, old ones fading

  private:
    struct Count {
        double right = 0;
        double all = 0;

        void add(bool is_right);
        double shrunk(double rate, double weight) const;
    };

    AcceptancePrior belief_;
    Count total_;
    std::vector<Count> by_depth_;
    std::array<Count, MarginalRule::kBins> by_confidence_{};
};

}  // namespace knap
