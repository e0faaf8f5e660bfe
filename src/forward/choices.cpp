#include "forward/choices.h"

#include <algorithm>
#include <cstddef>

namespace knap {

Token choice_of(std::span<const float> logits) {
    return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
}

void append_choices(std::span<const float> logits, int n_rows, std::vector<Token>& choices) {
    const std::size_t n_vocab = logits.size() / static_cast<std::size_t>(n_rows);
    for (std::size_t first = 0; first < logits.size(); first += n_vocab) {
        choices.push_back(choice_of(logits.subspan(first, n_vocab)));
    }
}

}  // namespace knap
