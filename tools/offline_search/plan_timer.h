// Measures the speed of a strategy on a few prompts relative to plain decoding. Both run in turn on
// each prompt: a slow drift of the machine affects both and leaves their ratio unchanged.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "knap/knap.h"

#include "tools/offline_search/offline_search.h"

namespace knap {

class PlanTimer {
  public:
    // One session per prompt keeps its rows from trial to trial. The engine must outlive this
    // object. `is_cancelled` may be called on compute threads.
    PlanTimer(Engine& engine,
              std::vector<std::vector<Token>> prompts,
              int n_predict,
              std::function<bool()> is_cancelled);

    // Computes the prompts. Returns false when cancelled.
    bool read_prompts(const std::function<void(double fraction)>& on_progress);
    // Decodes greedily; call it after read_prompts(). Returns nullopt when cancelled.
    std::optional<TrialSpeed> measure(const SpeculationOptions& speculation);

  private:
    std::optional<Result> generate(std::size_t prompt, const SpeculationOptions& speculation);

    std::vector<std::vector<Token>> prompts_;
    int n_predict_;
    std::function<bool()> is_cancelled_;
    std::vector<Session> sessions_;  // by prompt
};

}  // namespace knap
