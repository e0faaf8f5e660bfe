#include "search/head_rows.h"

#include <algorithm>
#include <vector>

#include "forward/forward.h"
#include "model/config.h"
#include "search/row_numbers.h"

namespace knap {

namespace {

// Runs the head in passes of a bounded number of rows, since each row has logits for the whole
// vocabulary. `hold(request, first, count)` sets the input rows of a pass and `visit(result,
// count)` receives its result. Returns false when cancelled.
template <typename Hold, typename Visit>
bool run_head(Forward& forward, std::size_t n_rows, bool chooses, Hold hold, Visit visit) {
    const int step = std::min(kReservedLogitRows, forward.max_rows(0));
    const std::vector<int> rows = row_numbers(step);
    for (std::size_t first = 0; first < n_rows; first += rows.size()) {
        const std::size_t count = std::min(rows.size(), n_rows - first);
        // No layer runs, so nothing is written to the cache row that the pass names.
        ForwardRequest request{
            .first_row = 0,
            .entry_layer = forward.config().n_layers,
            .logit_rows = std::span(rows).first(count),
            .chooses = chooses,
            .kind = PassKind::search,
        };
        hold(request, first, count);
        const ForwardResult result = forward.run(request);
        if (!result.is_complete) {
            return false;
        }
        visit(result, count);
    }
    return true;
}

template <typename Visit>
bool run_head(Forward& forward, std::span<const float> hidden, bool chooses, Visit visit) {
    const auto n_embd = static_cast<std::size_t>(forward.config().n_embd);
    const auto hold = [&](ForwardRequest& request, std::size_t first, std::size_t count) {
        request.hidden = hidden.subspan(first * n_embd, count * n_embd);
    };
    return run_head(forward, hidden.size() / n_embd, chooses, hold, visit);
}

// Appends the choices of each pass.
auto into(std::vector<Token>& choices) {
    return [&choices](const ForwardResult& result, std::size_t) {
        choices.insert(choices.end(), result.choices.begin(), result.choices.end());
    };
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
    return run_head(forward, hidden, true, into(choices)) ? choices : std::vector<Token>{};
}

std::vector<Token> choices_of(Forward& forward, std::span<const int> bank_rows) {
    std::vector<Token> choices;
    const auto hold = [&](ForwardRequest& request, std::size_t first, std::size_t count) {
        request.bank.hidden = bank_rows.subspan(first, count);
    };
    const bool is_complete = run_head(forward, bank_rows.size(), true, hold, into(choices));
    return is_complete ? choices : std::vector<Token>{};
}

}  // namespace knap
