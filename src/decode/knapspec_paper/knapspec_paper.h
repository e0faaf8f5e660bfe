// KnapSpec as published (docs/methods.md, "KnapSpec as published"), for comparison. Modules run or
// are skipped. At first the whole model drafts. In five rounds of every T, the streams of the
// verification are kept; the search then chooses a plan by them, and that plan drafts until the
// next search. Every round drafts at least one token, whether that pays off or not. Only measured
// times are carried from request to request.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/kept_rows.h"
#include "decode/knapspec_paper/options.h"
#include "decode/knapspec_paper/paper_search.h"
#include "decode/strategy.h"

namespace knap {

// Which rounds feed a search (docs/methods.md, "Schedule"). Rounds count from 1; the prompt is
// round 0.
struct PaperSchedule {
    int interval = 64;  // T

    bool keeps_rows(int round) const { return place(round) >= 2 && place(round) <= 6; }
    bool searches_after(int round) const { return place(round) == 6; }

  private:
    int place(int round) const { return round % interval; }
};

struct PaperModel {
    int n_layers = 0;
    int n_embd = 0;
    int interval = 64;
};

class KnapspecPaperStrategy final : public Strategy {
  public:
    KnapspecPaperStrategy(const PaperOptions& options,
                          const PaperModel& model,
                          std::unique_ptr<PaperSearch> search);

    void begin(const RequestStart& request) override;
    Proposal propose(const RoundState& state) override;
    void observe(const RoundOutcome& outcome) override;
    std::span<const Decision> decisions() const override { return decisions_; }

  private:
    void search_if_due(std::span<const Token> history);
    void search(const TargetRows& rows, int n_answered);
    void adopt(const PaperSearchResult& found, int n_rows, int n_answered);
    void decide(int n_answered, std::string reason, double predicted);
    void measure();
    StopRule stop_rule(int n_room) const;

    PaperOptions options_;
    PaperSchedule schedule_;
    ModulePlan whole_model_;
    std::vector<int> all_streams_;  // 0, 1, ..., 2L
    std::unique_ptr<PaperSearch> search_;

    // State of the current request.
    std::size_t n_prompt_ = 0;
    int round_ = 0;  // the latest one
    ModulePlan plan_;
    KeptRows kept_;
    Token pending_ = 0;
    int pending_row_ = 0;
    std::vector<Decision> decisions_;
    // Since the latest decision.
    int n_emitted_ = 0;
    double rounds_ms_ = 0;
    double plain_step_ms_ = 0;  // 0: not known yet
};

std::unique_ptr<Strategy> build_knapspec_paper(const SpeculationOptions& options,
                                               const StrategyParts& parts);

}  // namespace knap
