#include "search/replay.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "graph/forward.h"
#include "kv/kv_cache.h"
#include "search/choices.h"

namespace knap {

namespace {

// Of the target's row `row`, given the plan's logits for it.
double agreement(const TargetRows& target,
                 std::size_t row,
                 std::span<const float> draft,
                 const AgreementRule& rule) {
    if (!rule) {
        return choice_of(draft) == target.choices[row] ? 1 : 0;
    }
    const int position = target.first_row + static_cast<int>(row) + 1;
    return rule(position, draft,
                std::span(target.logits).subspan(row * draft.size(), draft.size()));
}

}  // namespace

std::optional<ReplayResult> replay(Forward& forward,
                                   const KvCache& cache,
                                   const ModulePlan& plan,
                                   const TargetRows& target,
                                   const AgreementRule& rule) {
    ReplayResult sum{.n_rows = target.n_rows()};
    const int step = std::min(scratch_rows(forward, cache), target.n_rows());
    KNAP_ASSERT(step > 0 || target.n_rows() == 0, "there is a scratch row");
    KNAP_ASSERT(!rule || !target.logits.empty(), "a rule compares logits");
    std::vector<int> rows(static_cast<std::size_t>(step));
    std::iota(rows.begin(), rows.end(), 0);
    for (int first = 0; first < target.n_rows(); first += step) {
        const auto begin = static_cast<std::size_t>(first);
        const auto count = static_cast<std::size_t>(std::min(step, target.n_rows() - first));
        const ForwardResult result = forward.run({
            .tokens = std::span(target.tokens).subspan(begin, count),
            .plan = &plan,
            .first_row = cache.committed(),
            .layout = {.kind = AttentionLayout::Kind::replay, .context = target.first_row + first},
            .logit_rows = std::span(rows).first(count),
        });
        if (!result.is_complete) {
            return std::nullopt;
        }
        const std::size_t n_vocab = result.logits.size() / count;
        for (std::size_t i = 0; i < count; ++i) {
            sum.agreed +=
                agreement(target, begin + i, result.logits.subspan(i * n_vocab, n_vocab), rule);
        }
    }
    return sum;
}

}  // namespace knap
