// Searching a plan to draft with before anything is asked (`knap search`): plans are tried one
// after the other on real prompts, and the fastest is kept. Draft&Verify tries what a Bayesian
// optimiser suggests (methods 7), LayerSkip every pair of exit layer and draft length of a grid
// (methods 9).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "knap/types.h"

#include "graph/module_plan.h"
#include "runtime/plans_model.h"

namespace knap {

enum class SearchMethod { draft_verify, layerskip };
std::string_view to_string(SearchMethod method);  // the strategy that drafts with the plan

// What the trials of a search follow from, beside the model: those of equal settings may be joined.
struct SearchSettings {
    SearchMethod method = SearchMethod::draft_verify;
    int n_predict = 32;  // tokens after each prompt
    int n_prompts = 0;
    std::string prompts_hash{};  // hash_of() their tokens
    std::string machine_hash{};  // MachineFingerprint::hash(): what times depend on
    int seed = 0;                // of draft-verify's optimiser
    // Of layerskip's grid.
    std::vector<int> exit_layers{};
    std::vector<int> lengths{};
};

// What a trial came to over all prompts.
struct TrialSpeed {
    double speed = 0;  // over plain decoding, measured in turn with it
    double tokens_per_second = 0;
    double acceptance_rate = 0;
};

// Why a plan was tried.
enum class TrialOrigin {
    starting_point,  // made by hand, before the optimiser has anything to go by
    optimiser,
    grid,
};
std::string_view to_string(TrialOrigin origin);  // "starting-point"

struct PlanTrial {
    TrialOrigin origin = TrialOrigin::grid;
    ModulePlan plan;
    int draft_max = 0;
    std::vector<double> point{};  // draft-verify: where the optimiser sees it
    TrialSpeed measured{};
};

struct OfflineSearch {
    PlansModel model{};
    SearchSettings settings{};
    std::vector<PlanTrial> trials{};  // in the order in which they were made
};

std::string hash_of(std::span<const std::vector<Token>> prompts);

// The fastest trial; null: none was made.
const PlanTrial* best_trial(const OfflineSearch& search);

// Measures one trial of a plan. Returns nullopt when cancelled.
using MeasureTrial =
    std::function<std::optional<TrialSpeed>(const SpeculationOptions& speculation)>;

// Makes trials until there are `n_trials`; calls `on_trial` after each. What is tried follows from
// the trials so far, so that a search that was interrupted goes on as if it had not been. False:
// cancelled.
bool run_trials(OfflineSearch& search,
                int n_trials,
                const MeasureTrial& measure,
                const std::function<void()>& on_trial);

}  // namespace knap
