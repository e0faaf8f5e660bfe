// The work behind `knap explain`: what the controller (decode/knapspec/knapspec.h) sees and chooses
// on a prompt. Lists the plans that it could draft with, the predicted speed of each, the measured
// speed of the best, and the controller's own decisions.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "knap/knap.h"

#include "decode/learned/learned.h"
#include "search/plan_search.h"

namespace knap {

struct ExplainOptions {
    int n_predict = 64;
    double profile_seconds = 4;  // time to measure costs when none are saved
    int max_trials = 4;          // candidates to run
};

// Members may be empty. Called on the caller's thread; `is_cancelled` also on compute threads, so
// it should only read a flag.
struct ExplainObserver {
    // Stages in order: "measure", "prompt", "search", "runs".
    std::function<void(std::string_view stage, double fraction)> on_progress{};
    std::function<bool()> is_cancelled{};
};

// One run of a strategy on the prompt.
struct Trial {
    Result result{};
    double speed = 0;           // over plain decoding; 0: nothing was decoded
    bool is_plain_text = true;  // same tokens as plain decoding
};

struct PlanCandidate {
    ModulePlan plan;
    std::optional<FoundPlan> replay{};  // nullopt: not replayed, the numbers below are estimates
    double draft_ratio = 0;             // rho: time of a draft step / of a plain step
    double acceptance = 0;              // the controller's estimate, after the replay
    int length = 0;                     // the fastest draft length; 0: drafting does not pay
    double predicted_speed = 0;         // over plain decoding
    std::optional<Trial> trial{};
};

// The time of a verification, in plain steps.
struct VerifyPrice {
    int n_rows = 0;
    double steps = 0;
};

struct Explanation {
    int n_prompt = 0;
    bool has_saved_costs = false;  // false: measured for this explanation only
    double plain_step_ms = 0;      // predicted, after the prompt
    std::vector<VerifyPrice> verify{};
    std::vector<PlanCandidate> candidates{};  // highest predicted speed first
    Result plain{};
    Trial lookup{};
    Trial knapspec{};
    std::optional<Learned> learned{};    // by earlier runs; nullopt: without memory
    std::optional<ModulePlan> chosen{};  // chosen_plan(); none: plain decoding
};

// The plan of knapspec's last decision, or nullopt if plain decoding is predicted to be faster. The
// prediction is that of the candidate with this plan or, if there is none, of the decision itself.
std::optional<ModulePlan> chosen_plan(std::span<const Decision> decisions,
                                      std::span<const PlanCandidate> candidates,
                                      int n_layers);

// Throws when the prompt cannot be run. Returns nullopt when cancelled.
std::optional<Explanation> explain(Engine& engine,
                                   std::span<const Token> prompt,
                                   const ExplainOptions& options = {},
                                   const ExplainObserver& observer = {});

}  // namespace knap
