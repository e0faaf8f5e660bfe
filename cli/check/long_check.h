// `knap check --tokens`: random requests on engines set up at random, until as many tokens as
// wanted have been compared with plain decoding's.
#pragma once

#include <vector>

#include "cli/check/command.h"
#include "tools/measure/prompt_data.h"

namespace knap {

// Returns the exit code: kExitFailed when an answer in the record differs. Prompts are made of
// `texts`.
int run_long_check(const Settings& settings,
                   const CheckArgs& args,
                   const std::vector<DataPrompt>& texts,
                   const Environment& environment);

}  // namespace knap
