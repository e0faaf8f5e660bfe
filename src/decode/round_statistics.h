// The results of the rounds of one request.
#pragma once

#include <vector>

#include "knap/types.h"

#include "decode/strategy.h"

namespace knap {

DraftSource source_of(const Proposal& proposal);

class RoundStatistics {
  public:
    // A round of which the first `n_kept` emitted tokens became text.
    void add(const Proposal& proposal, const RoundOutcome& outcome, int n_kept);
    // The gaps of emitted tokens, the first of them at `position`, where rounding may have chosen.
    void add_gaps(std::span<const float> gaps, int position);

    int n_rounds() const { return n_rounds_; }
    int n_kept() const { return n_kept_; }
    double draft_ms() const { return draft_ms_; }
    double verify_ms() const { return verify_ms_; }

    // Counts, rates and near ties; the rest of the structure is the caller's.
    SpeculationStatistics summary() const;

  private:
    SourceStatistics* statistics_of(DraftSource source);  // null for `none` and `forced`

    int n_rounds_ = 0;
    int n_nodes_ = 0;
    int n_kept_ = 0;
    int n_forced_ = 0;
    double draft_ms_ = 0;
    double verify_ms_ = 0;
    // [i]: drafts of more than i tokens, and those of them whose token i was kept
    std::vector<int> drafted_;
    std::vector<int> accepted_;
    SourceStatistics copies_;
    SourceStatistics plans_;
    SourceStatistics cascades_;
    std::vector<NearTie> near_ties_;
};

}  // namespace knap
