#include "search/target_rows.h"

#include <algorithm>

#include "base/error.h"
#include "forward/forward.h"
#include "kv/sequence.h"
#include "model/config.h"
#include "search/row_numbers.h"

namespace knap {

std::vector<Token> choose_from(std::span<const float> logits,
                               std::size_t n_rows,
                               int first_row,
                               const TokenChoice& choose) {
    const std::size_t n_vocab = logits.size() / n_rows;
    std::vector<Token> choices;
    for (std::size_t i = 0; i < n_rows; ++i) {
        choices.push_back(
            choose(first_row + static_cast<int>(i) + 1, logits.subspan(i * n_vocab, n_vocab)));
    }
    return choices;
}

int scratch_rows(const Forward& forward, const Sequence& cache) {
    const int n_free = std::min(cache.capacity(), cache.n_reserved()) - cache.committed();
    return n_free == 0 ? 0 : std::min(n_free, forward.max_rows(cache.committed()));
}

int target_rows_that_fit(const Forward& forward, const Sequence& cache, int n_wanted) {
    return std::max(0, std::min({n_wanted, cache.committed(), scratch_rows(forward, cache)}));
}

int count_streams(const Forward& forward) {
    return 2 * forward.config().n_layers + 1;
}

std::shared_ptr<const StreamBank> borrow_stream_bank(Forward& forward,
                                                     int n_rows,
                                                     std::size_t n_more) {
    const std::size_t n_streams = static_cast<std::size_t>(count_streams(forward)) + n_more;
    return forward.borrow_bank(n_streams * static_cast<std::size_t>(n_rows));
}

TargetRows collect_target_rows(Forward& forward,
                               const Sequence& cache,
                               std::span<const Token> text,
                               const TargetRequest& request) {
    const int n_committed = cache.committed();
    const int n_rows = target_rows_that_fit(forward, cache, request.n_rows);
    KNAP_ASSERT(text.size() >= static_cast<std::size_t>(n_committed), "every row has a token");
    if (n_rows == 0) {
        return {};
    }
    const int first_row = n_committed - n_rows;
    const auto tokens =
        text.subspan(static_cast<std::size_t>(first_row), static_cast<std::size_t>(n_rows));
    TargetRows target{.first_row = first_row, .tokens = {tokens.begin(), tokens.end()}};
    const int n_streams = request.streams ? count_streams(forward) : 0;
    if (n_streams > 0 && request.n_more_streams > 0) {
        target.bank = borrow_stream_bank(forward, n_rows, request.n_more_streams);
    }
    const std::vector<int> rows = row_numbers(n_rows);
    const std::vector<int> captures = row_numbers(n_streams);
    const std::vector<int> bank_rows = row_numbers(target.bank ? n_streams * n_rows : 0);
    // A separate branch: it attends to the rows before the r tokens, not to the committed rows of
    // the r tokens themselves.
    const ForwardResult result = forward.run({
        .tokens = tokens,
        .first_row = n_committed,
        .layout = {.kind = AttentionLayout::Kind::branches,
                   .context = first_row,
                   .branch_rows = n_rows},
        .captures = captures,
        .logit_rows = rows,
        .chooses = !request.choose,
        .bank = {.captured = bank_rows},
        .kind = PassKind::search,
    });
    if (!result.is_complete) {
        return {};
    }
    for (const std::span<const float> stream : result.captures) {
        target.streams.emplace_back(stream.begin(), stream.end());
    }
    if (request.choose) {
        target.choices =
            choose_from(result.logits, static_cast<std::size_t>(n_rows), first_row, request.choose);
    } else {
        target.choices.assign(result.choices.begin(), result.choices.end());
    }
    return target;
}

// The row before the answer chose its first token; the pending token has no row yet.
TargetRows written_rows(std::span<const Token> history, std::size_t n_prompt, int n_rows) {
    if (history.size() <= n_prompt || n_prompt == 0) {
        return {};
    }
    const std::size_t end = history.size() - 1;
    const std::size_t first =
        std::max(n_prompt - 1, end - std::min(end, static_cast<std::size_t>(n_rows)));
    const auto tokens = history.subspan(first, end - first);
    const auto choices = history.subspan(first + 1, end - first);
    return {.first_row = static_cast<int>(first),
            .tokens = {tokens.begin(), tokens.end()},
            .choices = {choices.begin(), choices.end()}};
}

}  // namespace knap
