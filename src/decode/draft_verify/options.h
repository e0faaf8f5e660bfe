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

// A table (strategy_options.h) for options with a member `threshold`.
template <typename Options>
constexpr auto threshold_settings() {
    using Option = StrategyOption<Options>;
    using Threshold = ThresholdOptions;
    return std::array{
        Option{{"target", "0..1", "acceptance that the exit aims at; 0.9 if not given"},
               set_threshold<Options, &Threshold::target>},
        Option{{"eps", "0..1", "how far a round moves the exit, 0: it stays; 0.01 if not given"},
               set_threshold<Options, &Threshold::step>},
        Option{{"start", "0..1", "exit of the first round; --exit-confidence or 0.6 if not given"},
               set_threshold<Options, &Threshold::start>},
        Option{{"beta1", "0..1", "memory of the acceptance; 0.5 if not given"},
               set_threshold<Options, &Threshold::acceptance_memory>},
        Option{{"beta2", "0..1", "memory of the exit; 0.9 if not given"},
               set_threshold<Options, &Threshold::threshold_memory>},
    };
}

// What the flags say: --draft-max is the cap, --exit-confidence the start. `max_rows`: of a
// verification, with the pending token.
ThresholdOptions threshold_from_flags(const SpeculationOptions& options, int max_rows);

}  // namespace knap
