#include "decode/lookup/lookup_source.h"

#include <algorithm>

#include "base/error.h"

namespace knap {

namespace {

// Ends a reference. No token has this id, so no run of the request's text reaches across it.
constexpr Token kEndMark = -1;

bool starts_with(std::span<const Token> text, std::span<const Token> beginning) {
    return text.size() >= beginning.size() &&
           std::ranges::equal(text.first(beginning.size()), beginning);
}

void append_reference(std::span<const Token> reference, std::vector<Token>& text) {
    text.insert(text.end(), reference.begin(), reference.end());
    text.push_back(kEndMark);
}

}  // namespace

void LookupSource::begin(std::span<const Token> prompt,
                         std::span<const std::vector<Token>> references,
                         std::span<const Token> prediction) {
    std::vector<Token> head;
    for (const std::vector<Token>& reference : references) {
        append_reference(reference, head);
    }
    if (!prediction.empty()) {
        append_reference(prediction, head);
    }
    // Another conversation is indexed from scratch, which is cheap next to its prefill.
    if (head != head_ || !starts_with(prompt, index_.text().subspan(head_.size()))) {
        head_ = std::move(head);
        index_.clear();
        index_.append(head_);
    }
    index_.append(prompt.subspan(index_.text().size() - head_.size()));
}

LookupSource::Found LookupSource::find(std::span<const Token> history, int n_tokens) {
    const std::size_t n_indexed = index_.text().size() - head_.size();
    KNAP_ASSERT(n_indexed <= history.size(), "the history extends the indexed text");
    index_.append(history.subspan(n_indexed));
    const auto match = index_.find_end();
    if (!match || n_tokens <= 0) {
        return {};
    }
    copy_from(match->next, static_cast<std::size_t>(n_tokens));
    return {.tokens = tokens_, .match_length = match->length};
}

// Copies the tokens from index `next` on. The copy may run past the end of the text into what it
// has just copied (as in LZ77), so that a loop fills the whole draft. It ends with a reference.
void LookupSource::copy_from(std::size_t next, std::size_t n_tokens) {
    const auto text = index_.text();
    tokens_.clear();
    for (std::size_t place = next; tokens_.size() < n_tokens; ++place) {
        const Token token = place < text.size() ? text[place] : tokens_[place - text.size()];
        if (token == kEndMark) {
            return;
        }
        tokens_.push_back(token);
    }
}

}  // namespace knap
