#include "tools/offline_search/offline_search.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/hash.h"
#include "forward/plan_text.h"
#include "tools/offline_search/search_trials.h"

namespace knap {

std::string_view to_string(SearchMethod method) {
    return method == SearchMethod::draft_verify ? "draft-verify" : "layerskip";
}

std::string_view to_string(TrialOrigin origin) {
    switch (origin) {
        case TrialOrigin::starting_point:
            return "starting-point";
        case TrialOrigin::optimiser:
            return "optimiser";
        case TrialOrigin::grid:
            return "grid";
    }
    return {};
}

std::string hash_of(std::span<const std::vector<Token>> prompts) {
    Fnv1a hash;
    for (const std::vector<Token>& prompt : prompts) {
        hash.add(std::uint64_t{prompt.size()});
        hash.add(std::as_bytes(std::span(prompt)));
    }
    return std::to_string(hash.value());
}

const PlanTrial* best_trial(const OfflineSearch& search) {
    const auto speed = [](const PlanTrial& trial) { return trial.measured.speed; };
    const auto best = std::ranges::max_element(search.trials, {}, speed);
    return best == search.trials.end() ? nullptr : &*best;
}

bool run_trials(OfflineSearch& search,
                int n_trials,
                const MeasureTrial& measure,
                const std::function<void()>& on_trial) {
    while (static_cast<int>(search.trials.size()) < n_trials) {
        PlanTrial trial = next_trial(search);
        const auto measured = measure({.strategy = std::string(to_string(search.settings.method)),
                                       .draft_max = trial.draft_max,
                                       .settings = {{"plan", to_string(trial.plan)}}});
        if (!measured) {
            return false;
        }
        trial.measured = *measured;
        search.trials.push_back(std::move(trial));
        on_trial();
    }
    return true;
}

}  // namespace knap
