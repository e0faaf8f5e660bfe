// The settings of an adaptive exit threshold, for the strategies that have one.
#pragma once

#include <array>
#include <string_view>

#include "knap/types.h"

#include "decode/draft_verify/adaptive_threshold.h"
#include "decode/option_table.h"

namespace knap {

template <typename Options, float ThresholdOptions::*Setting>
bool set_threshold(Options& options, std::string_view text) {
    return read_number(text, 0, 1, options.threshold.*Setting);
}

// A table (option_table.h) for options with a member `threshold`.
template <typename Options>
constexpr auto threshold_settings() {
    using Option = StrategyOption<Options>;
    using Threshold = ThresholdOptions;
    return std::array{
        Option{{"target", "0..1", "acceptance rate to aim for (default: 0.9)"},
               set_threshold<Options, &Threshold::target>},
        Option{
            {"eps", "0..1", "change of the exit confidence per round; 0: constant (default: 0.01)"},
            set_threshold<Options, &Threshold::step>},
        Option{{"exit-confidence", "0..1", "exit confidence of the first round (default: 0.6)"},
               set_threshold<Options, &Threshold::start>},
        Option{{"beta1", "0..1", "smoothing of the acceptance rate (default: 0.5)"},
               set_threshold<Options, &Threshold::acceptance_memory>},
        Option{{"beta2", "0..1", "smoothing of the exit confidence (default: 0.9)"},
               set_threshold<Options, &Threshold::threshold_memory>},
    };
}

// The longest draft, limited to what a verification of `max_rows` rows can hold beside the pending
// token. With a cap that no draft can reach, the threshold would fall as if drafts ended too early.
int threshold_cap(const SpeculationOptions& options, int max_rows);

}  // namespace knap
