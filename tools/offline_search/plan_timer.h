// How fast a strategy with its settings is on a few prompts, over plain decoding on the same ones
// in turn: machines drift, and a drift that both feel leaves their ratio alone.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "knap/knap.h"

#include "tools/offline_search/offline_search.h"

namespace knap {

class PlanTimer {
  public:
    // A session for each prompt keeps its rows from trial to trial. The engine must outlive this.
    // `is_cancelled` may be called from compute threads.
    PlanTimer(Engine& engine,
              std::vector<std::vector<Token>> prompts,
              int n_predict,
              std::function<bool()> is_cancelled);

    // Computes the prompts; `on_progress` hears which part of them. False: cancelled.
    bool read_prompts(const std::function<void(double fraction)>& on_progress);
    // Greedy, after read_prompts(). Nullopt: cancelled.
    std::optional<TrialSpeed> measure(const SpeculationOptions& speculation);

  private:
    std::optional<Result> generate(std::size_t prompt, const SpeculationOptions& speculation);

    std::vector<std::vector<Token>> prompts_;
    int n_predict_;
    std::function<bool()> is_cancelled_;
    std::vector<Session> sessions_;  // by prompt
};

}  // namespace knap
