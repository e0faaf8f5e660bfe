#include "search/head_rows.h"

#include <algorithm>
#include <vector>

#include "graph/forward.h"
#include "model/config.h"
#include "search/row_numbers.h"

namespace knap {

namespace {

// Rows go through the head so many at once: each has a vocabulary of logits. `visit` gets what
// every pass gives, and the number of its rows. False: cancelled.
bool run_head(Forward& forward,
              std::span<const float> hidden,
              bool chooses,
              const std::function<void(const ForwardResult&, std::size_t n_rows)>& visit) {
    const auto n_embd = static_cast<std::size_t>(forward.config().n_embd);
    const auto step = static_cast<std::size_t>(std::min(kReservedLogitRows, forward.max_rows(0)));
    const std::vector<int> rows = row_numbers(step);
    const std::size_t n_rows = hidden.size() / n_embd;
    for (std::size_t first = 0; first < n_rows; first += step) {
        const std::size_t count = std::min(step, n_rows - first);
        // No layer runs, so that nothing is written to the cache row that the pass names.
        const ForwardResult result = forward.run({
            .hidden = hidden.subspan(first * n_embd, count * n_embd),
            .first_row = 0,
            .entry_layer = forward.config().n_layers,
            .logit_rows = std::span(rows).first(count),
            .chooses = chooses,
        });
        if (!result.is_complete) {
            return false;
        }
        visit(result, count);
    }
    return true;
}

}  // namespace

bool visit_head_rows(Forward& forward,
                     std::span<const float> hidden,
                     const std::function<void(std::span<const float> logits)>& visit) {
    return run_head(forward, hidden, false, [&](const ForwardResult& result, std::size_t n_rows) {
        const std::size_t n_vocab = result.logits.size() / n_rows;
        for (std::size_t row = 0; row < n_rows; ++row) {
            visit(result.logits.subspan(row * n_vocab, n_vocab));
        }
    });
}

std::vector<Token> choices_of(Forward& forward, std::span<const float> hidden) {
    std::vector<Token> choices;
    const auto keep = [&](const ForwardResult& result, std::size_t) {
        choices.insert(choices.end(), result.choices.begin(), result.choices.end());
    };
    return run_head(forward, hidden, true, keep) ? choices : std::vector<Token>{};
}

}  // namespace knap
