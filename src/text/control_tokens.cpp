#include "text/control_tokens.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <set>

#include "base/error.h"
#include "text/utf8.h"

namespace knap {

namespace {

constexpr std::uint32_t kFirstMark = 0xF0000;  // private use, plane 15
constexpr std::uint32_t kLastMark = 0xFFFFD;

// As ASCII-only JSON writes a character of four bytes: two halves of a surrogate pair.
std::string json_escape(std::string_view mark) {
    const std::uint32_t above = code_point(mark) - 0x10000;
    char text[16];
    std::snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xD800 + (above >> 10),
                  0xDC00 + (above & 0x3FF));
    return text;
}

bool has_inside(const ControlTokens::Place& place, const std::vector<std::size_t>& plain) {
    const auto first = std::upper_bound(plain.begin(), plain.end(), place.begin);
    return first != plain.end() && *first <= place.end;
}

}  // namespace

ControlTokens::ControlTokens(const Tokenizer& tokenizer) : is_first_(256) {
    std::set<std::size_t, std::greater<>> lengths;
    for (Token token = 0; token < tokenizer.n_vocab(); ++token) {
        const std::string_view text = tokenizer.piece(token);
        if (tokenizer.is_control(token) && !text.empty()) {
            texts_.emplace(text);
            lengths.insert(text.size());
            is_first_[static_cast<unsigned char>(text[0])] = true;
        }
    }
    lengths_.assign(lengths.begin(), lengths.end());
}

std::size_t ControlTokens::longest_at(std::string_view text, std::size_t at) const {
    if (!is_first_[static_cast<unsigned char>(text[at])]) {
        return 0;
    }
    for (std::size_t length : lengths_) {
        if (length <= text.size() - at && texts_.contains(std::string(text.substr(at, length)))) {
            return length;
        }
    }
    return 0;
}

std::vector<ControlTokens::Place> ControlTokens::find(std::string_view text) const {
    std::vector<Place> places;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = longest_at(text, at);
        if (length > 0) {
            places.push_back({at, at + length});
        }
        at += std::max<std::size_t>(length, 1);
    }
    return places;
}

std::string ControlTokens::with_marks(std::string_view text, std::string_view mark) const {
    std::string marked;
    std::size_t n_copied = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (longest_at(text, at) > 0) {
            const std::size_t n_first = first_utf8_sequence(text.substr(at)).n_bytes;
            marked += text.substr(n_copied, at + n_first - n_copied);
            marked += mark;
            n_copied = at + n_first;
        }
    }
    marked += text.substr(n_copied);
    return marked;
}

std::string unused_mark(const std::vector<std::string_view>& texts) {
    for (std::uint32_t code_point = kFirstMark; code_point <= kLastMark; ++code_point) {
        const std::string mark = utf8_of(code_point);
        const std::string escaped = json_escape(mark);
        const bool is_used = std::any_of(texts.begin(), texts.end(), [&](std::string_view text) {
            return text.find(mark) != text.npos || text.find(escaped) != text.npos;
        });
        if (!is_used) {
            return mark;
        }
    }
    fail("messages: expected a private-use character that they lack, found all");
}

std::vector<std::size_t> remove_marks(std::string& text, std::string_view mark) {
    const std::string escaped = json_escape(mark);
    std::vector<std::size_t> places;
    std::string rest;
    const std::string_view view = text;
    std::size_t n_copied = 0;
    while (true) {
        const std::size_t raw = view.find(mark, n_copied);
        const std::size_t written = view.find(escaped, n_copied);
        const std::size_t next = std::min(raw, written);
        if (next == std::string_view::npos) {
            break;
        }
        rest += view.substr(n_copied, next - n_copied);
        places.push_back(rest.size());
        n_copied = next + (next == raw ? mark.size() : escaped.size());
    }
    rest += view.substr(n_copied);
    text = std::move(rest);
    return places;
}

std::vector<Token> encode_with_plain(const Tokenizer& tokenizer,
                                     const ControlTokens& controls,
                                     std::string_view text,
                                     const std::vector<std::size_t>& plain,
                                     std::size_t offset) {
    std::vector<Tokenizer::Stretch> stretches;
    std::size_t parsed_from = offset;  // not yet in `stretches`, to be parsed
    std::size_t begin = offset;        // of the stretch after the last control token
    bool has_plain = false;
    const auto end_stretch = [&](std::size_t end) {
        if (has_plain) {
            // Plain text as a whole, so that its words are cut as those of any message.
            stretches.push_back({text.substr(parsed_from, begin - parsed_from), true});
            stretches.push_back({text.substr(begin, end - begin), false});
            parsed_from = end;
        }
        has_plain = false;
    };
    for (const ControlTokens::Place& place :
         plain.empty() ? std::vector<ControlTokens::Place>() : controls.find(text)) {
        if (place.begin < offset) {
            continue;
        }
        if (has_inside(place, plain)) {
            has_plain = true;
        } else {
            end_stretch(place.begin);
            begin = place.end;
        }
    }
    end_stretch(text.size());
    stretches.push_back({text.substr(parsed_from), true});
    return tokenizer.encode(stretches, /*add_special=*/offset == 0);
}

}  // namespace knap
