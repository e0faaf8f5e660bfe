// Strategies with settings that make them draft and search often on any model, even a random one,
// whose reduced versions hardly agree with it: little is left out, drafts go on when they are
// unsure, and searches follow each other closely.
#pragma once

#include <vector>

#include "tools/check/lossless_check.h"

namespace knap {

// Beside lossless_contenders(), which draft as they do by default.
std::vector<Contender> eager_contenders(const EngineParts& parts);

}  // namespace knap
