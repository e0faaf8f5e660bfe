#include "text/grammar/awaited_text.h"

#include <algorithm>
#include <cctype>

namespace knap {
namespace {

// Whether a piece begins with an end of `string`, or contains all of it.
bool may_complete(std::string_view piece, std::string_view string) {
    if (piece.find(string) != std::string_view::npos) {
        return true;
    }
    for (std::size_t n = 1; n < string.size() && n <= piece.size(); ++n) {
        if (piece.starts_with(string.substr(string.size() - n))) {
            return true;
        }
    }
    return false;
}

}  // namespace

AwaitedStrings::AwaitedStrings(std::vector<std::string> strings, const Tokenizer& tokenizer)
    : strings_(std::move(strings)) {
    if (strings_.empty()) {
        return;
    }
    longest_ = std::ranges::max_element(strings_, {}, &std::string::size)->size();
    may_complete_.resize(static_cast<std::size_t>(tokenizer.n_vocab()));
    for (Token token = 0; token < tokenizer.n_vocab(); ++token) {
        const std::string_view piece = tokenizer.piece(token);
        may_complete_[static_cast<std::size_t>(token)] = std::ranges::any_of(
            strings_, [&](const std::string& string) { return knap::may_complete(piece, string); });
    }
}

bool AwaitedStrings::may_complete(Token token) const {
    return !may_complete_.empty() && may_complete_[static_cast<std::size_t>(token)];
}

std::optional<AwaitedStrings::Place> AwaitedStrings::find(std::string_view text) const {
    for (const std::string& string : strings_) {
        const std::size_t begin = text.find(string);
        if (begin != std::string_view::npos) {
            return Place{begin, begin + string.size()};
        }
    }
    return std::nullopt;
}

void RecentText::append(Token token, std::string_view piece) {
    parts.push_back({token, static_cast<std::ptrdiff_t>(text.size())});
    text += piece;
}

void RecentText::keep_last(std::size_t n_bytes) {
    if (text.size() <= n_bytes) {
        return;
    }
    const std::size_t n_dropped = text.size() - n_bytes;
    text.erase(0, n_dropped);
    for (Part& part : parts) {
        part.begin -= static_cast<std::ptrdiff_t>(n_dropped);
    }
    // A part is over where the next one begins.
    const auto first = std::ranges::find_if(parts, [](const Part& part) { return part.begin > 0; });
    if (first != parts.begin()) {
        parts.erase(parts.begin(), first - 1);
    }
}

std::optional<std::string> plain_text_of(std::string_view pattern) {
    std::string text;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const bool is_escaped = pattern[i] == '\\';
        i += is_escaped ? 1 : 0;
        if (i == pattern.size()) {
            return std::nullopt;
        }
        const char c = pattern[i];
        constexpr std::string_view kOperators = ".^$|()*+?[]{}";
        const bool is_plain = is_escaped ? std::isalnum(static_cast<unsigned char>(c)) == 0
                                         : kOperators.find(c) == std::string_view::npos;
        if (!is_plain) {
            return std::nullopt;
        }
        text += c;
    }
    return text;
}

}  // namespace knap
