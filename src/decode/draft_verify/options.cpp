#include "decode/draft_verify/options.h"

#include <algorithm>

namespace knap {

ThresholdOptions threshold_from_flags(const SpeculationOptions& options, int max_rows) {
    ThresholdOptions threshold;
    if (options.draft_max > 0) {
        threshold.cap = options.draft_max;
    }
    if (options.exit_confidence > 0) {
        threshold.start = options.exit_confidence;
    }
    // A cap that no draft can reach would let the threshold fall as if drafts ended too early.
    threshold.cap = std::clamp(threshold.cap, 1, std::max(1, max_rows - 1));
    return threshold;
}

}  // namespace knap
