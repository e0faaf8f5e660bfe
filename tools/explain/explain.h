// What the controller (decode/knapspec.h) sees and chooses on a prompt: the plans that it could
// draft with, what each of them is believed to give and what the best of them really give, and its
// own decisions. The work behind `knap explain`, with time to spend.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "knap/knap.h"

#include "search/plan_search.h"

namespace knap {

struct ExplainOptions {
    int n_predict = 64;
    double profile_seconds = 4;  // to measure costs for, where none are saved
    int max_trials = 4;          // candidates that are really drafted with
};

// Each member may be empty. Called on the caller's thread; `is_cancelled` from compute threads too,
// so it should only read a flag.
struct ExplainObserver {
    // Stages follow each other: "measure", "prompt", "search", "runs".
    std::function<void(std::string_view stage, double fraction)> on_progress{};
    std::function<bool()> is_cancelled{};
};

// The prompt continued with one strategy.
struct Trial {
    Result result{};
    double speed = 0;           // over plain decoding; 0: nothing was decoded
    bool is_plain_text = true;  // the tokens of plain decoding
};

struct PlanCandidate {
    ModulePlan plan;
    std::optional<FoundPlan> replay{};  // none: what is said of it is belief alone
    double draft_ratio = 0;             // rho: a draft step over a step of plain decoding
    double acceptance = 0;              // of a draft, as the controller believes after the replay
    int length = 0;                     // tokens drafted in a row at which it is fastest; 0: none
    double predicted_speed = 0;         // over plain decoding
    std::optional<Trial> trial{};
};

// A verification in steps of plain decoding.
struct VerifyPrice {
    int n_rows = 0;
    double steps = 0;
};

struct Explanation {
    int n_prompt = 0;
    bool has_saved_costs = false;  // false: measured for this explanation alone
    double plain_step_ms = 0;      // predicted, after the prompt
    std::vector<VerifyPrice> verify{};
    std::vector<PlanCandidate> candidates{};  // the fastest by prediction first
    Result plain{};
    Trial lookup{};
    Trial knapspec{};
    std::optional<ModulePlan> chosen{};  // chosen_plan(); none: plain decoding
};

// The plan of knapspec's last decision, unless plain decoding is predicted to be faster: by the
// candidate of that plan or, where it is none of the candidates, by the decision itself.
std::optional<ModulePlan> chosen_plan(std::span<const Decision> decisions,
                                      std::span<const PlanCandidate> candidates,
                                      int n_layers);

// Throws where the prompt cannot be run. Nullopt: cancelled.
std::optional<Explanation> explain(Engine& engine,
                                   std::span<const Token> prompt,
                                   const ExplainOptions& options = {},
                                   const ExplainObserver& observer = {});

}  // namespace knap
