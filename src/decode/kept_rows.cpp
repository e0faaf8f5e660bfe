#include "decode/kept_rows.h"

#include <cstddef>
#include <vector>

#include "base/error.h"

namespace knap {

namespace {

template <typename Value>
void erase_first(std::vector<Value>& values, std::size_t n) {
    values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n));
}

}  // namespace

void KeptRows::add(const RoundOutcome& outcome, Token pending, int row) {
    KNAP_ASSERT(rows_.tokens.empty() || row == rows_.first_row + rows_.n_rows(),
                "rounds are consecutive");
    if (rows_.tokens.empty()) {
        rows_.first_row = row;
        rows_.streams.resize(outcome.captures.size());
    }
    // Of the verification: the pending token, and the accepted nodes.
    std::vector<std::size_t> kept{0};
    for (const int node : outcome.path) {
        kept.push_back(static_cast<std::size_t>(node) + 1);
    }
    // The last emitted token has no row yet.
    rows_.tokens.push_back(pending);
    rows_.tokens.insert(rows_.tokens.end(), outcome.emitted.begin(), outcome.emitted.end() - 1);
    const auto n_embd = static_cast<std::size_t>(n_embd_);
    for (const std::size_t verified : kept) {
        for (std::size_t i = 0; i < rows_.streams.size(); ++i) {
            const auto stream = outcome.captures[i].subspan(verified * n_embd, n_embd);
            rows_.streams[i].insert(rows_.streams[i].end(), stream.begin(), stream.end());
        }
        rows_.choices.push_back(best_token(outcome.logits.row(verified)));
    }
}

void KeptRows::limit(int max_rows) {
    if (rows_.n_rows() <= max_rows) {
        return;
    }
    const auto n_old = static_cast<std::size_t>(rows_.n_rows() - max_rows);
    rows_.first_row += static_cast<int>(n_old);
    erase_first(rows_.tokens, n_old);
    erase_first(rows_.choices, n_old);
    for (std::vector<float>& stream : rows_.streams) {
        erase_first(stream, n_old * static_cast<std::size_t>(n_embd_));
    }
}

}  // namespace knap
