#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/utf8.h"

namespace knap {

StopStrings::Matcher::Matcher(std::string string)
    : string_(std::move(string)), border_(string_.size() + 1, 0) {
    for (std::size_t n = 2; n <= string_.size(); ++n) {
        std::size_t border = border_[n - 1];
        while (border > 0 && string_[border] != string_[n - 1]) {
            border = border_[border];
        }
        border_[n] = border + (string_[border] == string_[n - 1] ? 1 : 0);
    }
}

void StopStrings::Matcher::advance(char byte) {
    while (n_matched_ > 0 && string_[n_matched_] != byte) {
        n_matched_ = border_[n_matched_];
    }
    n_matched_ += string_[n_matched_] == byte ? 1 : 0;
}

StopStrings::StopStrings(std::vector<std::string> strings) {
    matchers_.reserve(strings.size());
    for (std::string& string : strings) {
        if (string.empty()) {
            fail("`.stop`: expected a string of at least one byte, found an empty string");
        }
        if (whole_utf8_length(string) != string.size()) {
            fail("`.stop`: expected UTF-8 text, found other bytes");
        }
        matchers_.emplace_back(std::move(string));
    }
}

StopStrings::Step StopStrings::push(std::string_view text) {
    if (has_stopped_) {
        return {"", true};
    }
    if (matchers_.empty()) {
        return {std::string(text), false};
    }
    std::size_t n_read = 0;
    while (n_read < text.size() && !has_stopped_) {
        has_stopped_ = advance(text[n_read++]);
    }
    std::string safe = std::exchange(held_, {});
    safe += text.substr(0, n_read);
    (has_stopped_ ? found_ : held_) = safe.substr(safe.size() - n_suspect_);
    safe.resize(safe.size() - n_suspect_);
    return {std::move(safe), has_stopped_};
}

std::string StopStrings::finish() {
    return std::exchange(held_, {});
}

bool StopStrings::advance(char byte) {
    n_suspect_ = 0;
    std::size_t n_complete = 0;
    for (Matcher& matcher : matchers_) {
        matcher.advance(byte);
        n_suspect_ = std::max(n_suspect_, matcher.n_matched());
        if (matcher.is_complete()) {
            n_complete = std::max(n_complete, matcher.n_matched());
        }
    }
    if (n_complete > 0) {
        n_suspect_ = n_complete;
    }
    return n_complete > 0;
}

}  // namespace knap
