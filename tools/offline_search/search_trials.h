// Which plan an offline search tries next. It follows from the settings and the trials so far
// alone.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tools/offline_search/offline_search.h"

namespace knap {

// Modules are skipped whose coordinate is above one half: the first L coordinates are those of the
// attentions, the others those of the MLPs (methods 7).
ModulePlan plan_at(std::span<const double> point);

// LayerSkip's grid where none is given: about eight exit layers, evenly spread.
std::vector<int> default_exit_layers(int n_layers);
std::vector<int> default_draft_lengths();

// Trials that a search has where no number is given: the whole grid, or a tenth of the paper's
// number, which is minutes for a small model.
int default_trials(const SearchSettings& settings);
// Most trials that a search can have.
int max_trials(const SearchSettings& settings);

// Of the trial of this number, counted from 0.
TrialOrigin origin_of_trial(const SearchSettings& settings, std::size_t number);

// Not yet measured. There are fewer trials than max_trials().
PlanTrial next_trial(const OfflineSearch& search);

}  // namespace knap
