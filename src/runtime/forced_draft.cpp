#include "runtime/forced_draft.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace knap {

ForcedDraft::ForcedDraft(const Tokenizer& tokenizer, std::string text, int max_tokens)
    : tokenizer_(tokenizer), text_(std::move(text)), tokens_(tokenizer.encode_inside(text_)) {
    const bool is_one_byte = text_.size() == 1;
    if (tokens_.size() > 1 || is_one_byte) {
        tokens_.pop_back();
    }
    tokens_.resize(std::min(tokens_.size(), static_cast<std::size_t>(std::max(max_tokens, 0))));
}

int ForcedDraft::n_agreeing(std::span<const Token> tokens) const {
    std::string_view left = text_;
    int n = 0;
    for (const Token token : tokens) {
        const std::string_view piece = tokenizer_.piece(token);
        const std::size_t n_common = std::min(piece.size(), left.size());
        if (left.empty() || piece.substr(0, n_common) != left.substr(0, n_common)) {
            break;
        }
        left.remove_prefix(n_common);
        ++n;
    }
    return n;
}

bool ForcedDraft::is_covered_by(std::span<const Token> draft) const {
    const auto n = static_cast<std::size_t>(n_agreeing(draft));
    return tokenizer_.decode(draft.first(n)).size() >= tokenizer_.decode(tokens_).size();
}

}  // namespace knap
