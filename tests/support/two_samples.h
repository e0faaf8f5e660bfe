// Compares two samples of short texts: do they come from the same distribution?
#pragma once

#include <map>
#include <vector>

#include "knap/types.h"

namespace knap::test {

// How often each text occurred.
using TextCounts = std::map<std::vector<Token>, int>;

// Of two samples of the same size: large when they come from different distributions.
double chi_square(const TextCounts& a, const TextCounts& b);

}  // namespace knap::test
