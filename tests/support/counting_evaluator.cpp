#include "support/counting_evaluator.h"

#include <numeric>

namespace knap::test {

bool CountingEvaluator::try_module(const ModuleTrial& trial) {
    for (const LevelTrial& level : trial.levels) {
        const bool knows_first = trial.first_is_target && level.level == Level::full;
        if (level.level != Level::skip) {
            batches_.push_back(static_cast<std::int64_t>(level.scores.size()) -
                               (knows_first ? 1 : 0));
        }
    }
    return counted_.try_module(trial);
}

std::int64_t CountingEvaluator::n_module_rows() const {
    return n_rows() * std::accumulate(batches_.begin(), batches_.end(), std::int64_t{0});
}

std::int64_t CountingEvaluator::n_passes(int states_per_pass) const {
    std::int64_t n = 0;
    for (const std::int64_t batch : batches_) {
        n += (batch + states_per_pass - 1) / states_per_pass;
    }
    return n;
}

}  // namespace knap::test
