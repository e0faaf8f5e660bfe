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

// The number of `choices` that equal the target's, starting at its row `first`.
double agreement(const TargetRows& target, std::size_t first, std::span<const Token> choices) {
    return std::inner_product(choices.begin(), choices.end(),
                              std::span(target.choices).subspan(first).begin(), 0.0, std::plus<>(),
                              std::equal_to<>());
}

// The same by a rule, from the logits [n_vocab, n_rows] of the pass.
double agreement(const TargetRows& target,
                 std::size_t first,
                 std::span<const float> logits,
                 std::size_t n_rows,
                 const AgreementRule& rule) {
    const std::size_t n_vocab = logits.size() / n_rows;
    double agreed = 0;
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::size_t row = first + i;
        agreed +=
            rule(target.first_row + static_cast<int>(row) + 1, logits.subspan(i * n_vocab, n_vocab),
                 std::span(target.logits).subspan(row * n_vocab, n_vocab));
    }
    return agreed;
}

}  // namespace

std::optional<ReplayResult> replay(Forward& forward,
                                   const Sequence& cache,
                                   const ModulePlan& plan,
                                   const TargetRows& target,
                                   const AgreementRule& rule) {
    ReplayResult sum{.n_rows = target.n_rows()};
    const int step = std::min(scratch_rows(forward, cache), target.n_rows());
    KNAP_ASSERT(step > 0 || target.n_rows() == 0, "there is a scratch row");
    KNAP_ASSERT(!rule || !target.logits.empty(), "a rule compares logits");
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
            .chooses = !rule,
            .kind = PassKind::search,
        });
        if (!result.is_complete) {
            return std::nullopt;
        }
        sum.agreed += rule ? agreement(target, begin, result.logits, count, rule)
                           : agreement(target, begin, result.choices);
    }
    return sum;
}

}  // namespace knap
