// What a plan's acceptance would have been on the most recent tokens, measured in one pass (methods
// 3.19): every row sees the target's own keys and values before it, as the first draft of a round
// does.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "graph/module_plan.h"
#include "search/target_rows.h"

namespace knap {

// The probability that a draft from the first logits is accepted by the second: 1 or 0 where their
// argmax decides, and the overlap of their distributions where tokens are drawn. `position` is that
// of the drafted token, one behind the row that has the logits.
using AgreementRule = std::function<double(
    int position, std::span<const float> draft, std::span<const float> target)>;

struct ReplayResult {
    double agreed = 0;  // sum over the rows
    int n_rows = 0;
};

// Runs the target's rows with `plan` in scratch rows, in as many passes as they need. With an empty
// rule the choices are compared; otherwise the target has logits. Nullopt: cancelled.
std::optional<ReplayResult> replay(Forward& forward,
                                   const KvCache& cache,
                                   const ModulePlan& plan,
                                   const TargetRows& target,
                                   const AgreementRule& rule = {});

}  // namespace knap
