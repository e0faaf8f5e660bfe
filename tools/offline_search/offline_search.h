// Offline search for a plan to draft with (`knap search`): tries plans one after the other on real
// prompts and keeps the fastest. Draft&Verify tries what a Bayesian optimiser suggests, LayerSkip
// every pair of exit layer and draft length in a grid (docs/methods.md, "Offline search").
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "knap/types.h"

#include "forward/module_plan.h"
#include "runtime/files/plans_model.h"

namespace knap {

enum class SearchMethod { draft_verify, layerskip };
std::string_view to_string(SearchMethod method);  // the strategy that drafts with the plan

// Everything besides the model that determines the trials of a search: a search may resume from the
// trials of another with equal settings.
struct SearchSettings {
    SearchMethod method = SearchMethod::draft_verify;
    int n_predict = 32;  // tokens after each prompt
    int n_prompts = 0;
    std::string prompts_hash{};  // hash_of() their tokens
    std::string machine_hash{};  // MachineFingerprint::hash(): everything that affects times
    int seed = 0;                // draft-verify: of the optimiser
    // layerskip: the grid.
    std::vector<int> exit_layers{};
    std::vector<int> lengths{};
};

// The result of a trial over all prompts.
struct TrialSpeed {
    double speed = 0;  // over plain decoding, which is measured in turn with it
    double tokens_per_second = 0;
    double acceptance_rate = 0;
};

// Why a plan was tried.
enum class TrialOrigin {
    starting_point,  // fixed: the optimiser has no data yet
    optimiser,
    grid,
};
std::string_view to_string(TrialOrigin origin);  // "starting-point"

struct PlanTrial {
    TrialOrigin origin = TrialOrigin::grid;
    ModulePlan plan;
    int draft_max = 0;
    std::vector<double> point{};  // draft-verify: the optimiser's point for this plan
    TrialSpeed measured{};
};

struct OfflineSearch {
    PlansModel model{};
    SearchSettings settings{};
    std::vector<PlanTrial> trials{};  // in the order they were made
};

std::string hash_of(std::span<const std::vector<Token>> prompts);

// The fastest trial; null if there are none.
const PlanTrial* best_trial(const OfflineSearch& search);

// Measures one trial of a plan. Returns nullopt when cancelled.
using MeasureTrial =
    std::function<std::optional<TrialSpeed>(const SpeculationOptions& speculation)>;

// Makes trials until there are `n_trials` and calls `on_trial` after each. The next trial depends
// only on the settings and the trials so far, so an interrupted search continues as if it had not
// been interrupted. Returns false when cancelled.
bool run_trials(OfflineSearch& search,
                int n_trials,
                const MeasureTrial& measure,
                const std::function<void()>& on_trial);

}  // namespace knap
