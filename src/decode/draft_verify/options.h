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
        Option{{"target", "0..1", "acceptance that the exit aims at; 0.9 if not given"},
               set_threshold<Options, &Threshold::target>},
        Option{{"eps", "0..1", "how far a round moves the exit, 0: it stays; 0.01 if not given"},
               set_threshold<Options, &Threshold::step>},
        Option{{"exit-confidence", "0..1", "exit of the first round; 0.6 if not given"},
               set_threshold<Options, &Threshold::start>},
        Option{{"beta1", "0..1", "memory of the acceptance; 0.5 if not given"},
               set_threshold<Options, &Threshold::acceptance_memory>},
        Option{{"beta2", "0..1", "memory of the exit; 0.9 if not given"},
               set_threshold<Options, &Threshold::threshold_memory>},
    };
}

// The longest draft, within what a verification of `max_rows` rows holds beside the pending token.
// A cap that no draft can reach would let the threshold fall as if drafts ended too early.
int threshold_cap(const SpeculationOptions& options, int max_rows);

}  // namespace knap
