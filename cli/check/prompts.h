// The built-in prompts of `knap check`, used without --data.
#pragma once

#include <vector>

#include "tools/measure/prompt_data.h"

namespace knap {

// Seven short prompts of different kinds, and one of more than a thousand tokens.
std::vector<DataPrompt> default_check_prompts();

}  // namespace knap
