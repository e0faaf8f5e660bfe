// Texts for `knap check` to run a model on when it is given none.
#pragma once

#include <vector>

#include "tools/measure/prompt_data.h"

namespace knap {

// Seven short ones of different kinds and one of more than a thousand tokens.
std::vector<DataPrompt> default_check_prompts();

}  // namespace knap
