#include "search/matchness.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "graph/forward.h"
#include "kv/kv_cache.h"
#include "model/config.h"
#include "search/head_rows.h"
#include "search/similarity.h"

namespace knap {

namespace {

// X[2L] of `tokens` as a branch of their own behind the context: f32 [n_embd, n_tokens]. Empty:
// cancelled.
std::vector<float> end_of_branch(Forward& forward,
                                 const KvCache& cache,
                                 const ModulePlan& plan,
                                 std::span<const Token> tokens,
                                 int n_context) {
    const int end = 2 * forward.config().n_layers;
    const ForwardResult result = forward.run({
        .tokens = tokens,
        .plan = &plan,
        .first_row = cache.committed(),
        .layout = {.kind = AttentionLayout::Kind::branches,
                   .context = n_context,
                   .branch_rows = static_cast<int>(tokens.size())},
        .captures = std::span(&end, 1),
    });
    if (!result.is_complete) {
        return {};
    }
    return {result.captures.front().begin(), result.captures.front().end()};
}

}  // namespace

std::optional<double> matchness(Forward& forward,
                                const KvCache& cache,
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
    const auto state = end_of_branch(forward, cache, plan, text.first(n_rows), n_context);
    const std::vector<Token> choices = choices_of(forward, state);
    if (choices.empty()) {
        return std::nullopt;
    }
    const int n_matches = std::inner_product(choices.begin(), choices.end(), text.begin() + 1, 0,
                                             std::plus<>(), std::equal_to<>());
    return static_cast<double>(n_matches) / static_cast<double>(n_rows);
}

}  // namespace knap
