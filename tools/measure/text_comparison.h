// Whether a strategy wrote what it must: the text of plain decoding.
#pragma once

#include <optional>
#include <string_view>

#include "knap/types.h"

#include "tools/measure/report/bench_report.h"

namespace knap {

// Whether the text is to be plain decoding's: with the rule `ratio` and in a projection it is not.
bool has_text_of_plain(const SpeculationOptions& how, const SamplingOptions& sampling);

// Where `drafted` first differs from `plain`, if has_text_of_plain(). Throws knap::Error in one
// line that begins with `where` unless the answer lists the position as a near tie (kNearTieGap) or
// it may lie at the edge of a cut (top-k, top-p, min-p), where rounding decides which tokens take
// part.
std::optional<BenchDifference> compare_texts(const Result& plain,
                                             const Result& drafted,
                                             const SpeculationOptions& how,
                                             const SamplingOptions& sampling,
                                             std::string_view where);

}  // namespace knap
