#include "search/replay.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "forward/forward.h"
#include "kv/sequence.h"
#include "search/row_numbers.h"

namespace knap {

namespace {

int count_equal(std::span<const Token> choices, std::span<const Token> target) {
    return std::inner_product(choices.begin(), choices.end(), target.begin(), 0, std::plus<>(),
                              std::equal_to<>());
}

}  // namespace

std::optional<ReplayResult> replay(Forward& forward,
                                   const Sequence& cache,
                                   const ModulePlan& plan,
                                   const TargetRows& target,
                                   const TokenChoice& choose) {
    ReplayResult sum{.n_rows = target.n_rows()};
    const int step = std::min(scratch_rows(forward, cache), target.n_rows());
    if (step <= 0 && target.n_rows() > 0) {
        return std::nullopt;
    }
    const std::vector<int> rows = row_numbers(step);
    for (int first = 0; first < target.n_rows(); first += step) {
        const auto begin = static_cast<std::size_t>(first);
        const auto count = static_cast<std::size_t>(std::min(step, target.n_rows() - first));
        const ForwardResult result = forward.run({
            .tokens = std::span(target.tokens).subspan(begin, count),
            .plan = &plan,
            .first_row = cache.committed(),
            .layout = {.kind = AttentionLayout::Kind::replay, .context = target.first_row + first},
            .logit_rows = std::span(rows).first(count),
            .chooses = !choose,
            .kind = PassKind::search,
        });
        if (!result.is_complete) {
            return std::nullopt;
        }
        const auto chosen = std::span(target.choices).subspan(begin, count);
        sum.n_agreed +=
            choose
                ? count_equal(choose_from(result.logits, count, target.first_row + first, choose),
                              chosen)
                : count_equal(result.choices, chosen);
    }
    return sum;
}

}  // namespace knap
