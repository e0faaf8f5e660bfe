#include "search/matchness.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "forward/forward.h"
#include "kv/sequence.h"
#include "model/config.h"
#include "search/head_rows.h"
#include "search/row_numbers.h"
#include "search/target_rows.h"

namespace knap {

namespace {

// The plan's choice after each of `tokens`, which run as one branch after the context. Empty when
// cancelled.
std::vector<Token> choices_of_branch(Forward& forward,
                                     const Sequence& cache,
                                     const ModulePlan& plan,
                                     std::span<const Token> tokens,
                                     int n_context) {
    const int n_rows = static_cast<int>(tokens.size());
    const int end = 2 * forward.config().n_layers;
    // X[2L] goes through the head separately, in as many passes as its logits need.
    const auto bank = forward.borrow_bank(tokens.size());
    const std::vector<int> bank_rows = row_numbers(bank != nullptr ? n_rows : 0);
    const ForwardResult result = forward.run({
        .tokens = tokens,
        .plan = &plan,
        .first_row = cache.committed(),
        .layout = {.kind = AttentionLayout::Kind::branches,
                   .context = n_context,
                   .branch_rows = n_rows},
        .captures = std::span(&end, 1),
        .bank = {.captured = bank_rows},
        .kind = PassKind::search,
    });
    if (!result.is_complete) {
        return {};
    }
    if (bank != nullptr) {
        return choices_of(forward, bank_rows);
    }
    const std::span<const float> captured = result.captures.front();
    return choices_of(forward, std::vector<float>(captured.begin(), captured.end()));
}

}  // namespace

std::optional<double> matchness(Forward& forward,
                                const Sequence& cache,
                                const ModulePlan& plan,
                                std::span<const Token> text,
                                int n_context) {
    KNAP_ASSERT(text.size() >= 2, "a token follows another");
    KNAP_ASSERT(n_context <= cache.committed(), "the context is committed");
    const auto n_fitting = static_cast<std::size_t>(scratch_rows(forward, cache));
    const std::size_t n_rows = std::min(text.size() - 1, n_fitting);
    if (n_rows == 0) {
        return std::nullopt;
    }
    const std::vector<Token> choices =
        choices_of_branch(forward, cache, plan, text.first(n_rows), n_context);
    if (choices.empty()) {
        return std::nullopt;
    }
    const int n_matches = std::inner_product(choices.begin(), choices.end(), text.begin() + 1, 0,
                                             std::plus<>(), std::equal_to<>());
    return static_cast<double>(n_matches) / static_cast<double>(n_rows);
}

}  // namespace knap
