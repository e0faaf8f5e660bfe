#include "decode/draft_verify/options.h"

#include <algorithm>

namespace knap {

int threshold_cap(const SpeculationOptions& options, int max_rows) {
    return std::clamp(draft_max_or(options, ThresholdOptions{}.cap), 1, std::max(1, max_rows - 1));
}

}  // namespace knap
