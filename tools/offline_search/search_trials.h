// Chooses the plan that an offline search tries next. The choice depends only on the model, the
// settings and the trials so far.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tools/offline_search/offline_search.h"

namespace knap {

// Skips the modules whose coordinate is above one half. The first L coordinates are the attentions,
// the others the MLPs (docs/methods.md, "Offline search").
ModulePlan plan_at(std::span<const double> point);

// LayerSkip's default grid: about eight evenly spaced exit layers.
std::vector<int> default_exit_layers(int n_layers);
std::vector<int> default_draft_lengths();

// Trials when no number is given: the whole grid, or a tenth of the paper's number, which takes
// minutes with a small model.
int default_trials(const SearchSettings& settings);
// The largest number of trials of a search.
int max_trials(const SearchSettings& settings);

// The origin of the trial with this index, counted from 0.
TrialOrigin origin_of_trial(const SearchSettings& settings, std::size_t number);

// The next trial, not yet measured. Requires fewer trials than max_trials().
PlanTrial next_trial(const OfflineSearch& search);

}  // namespace knap
