#include "hub/reference.h"

#include <algorithm>

#include "base/error.h"
#include "base/quoted.h"

namespace knap {
namespace {

constexpr std::size_t kMaxRepository = 200;

bool is_word_letter(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_';
}

// Words with single dots and dashes between them, as the hub names things: never "..", and nothing
// hidden.
bool is_name(std::string_view text) {
    bool may_separate = false;
    for (const char letter : text) {
        const bool is_separator = letter == '.' || letter == '-';
        if (!is_word_letter(letter) && !(is_separator && may_separate)) {
            return false;
        }
        may_separate = !is_separator;
    }
    return may_separate;
}

bool is_repository(std::string_view text) {
    const auto parts = split(text, '/');
    return text.size() <= kMaxRepository && parts.size() == 2 &&
           std::ranges::all_of(parts, is_name);
}

}  // namespace

HubReference parse_hub_reference(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view repository = text.substr(0, colon);
    const std::string_view rest = colon == text.npos ? "" : text.substr(colon + 1);
    if (!is_repository(repository) || (colon != text.npos && rest.empty())) {
        fail("expected USER/REPO, USER/REPO:QUANT or USER/REPO:FILE.gguf, found ", in_quotes(text));
    }
    HubReference reference{.repository = std::string(repository)};
    (rest.ends_with(".gguf") ? reference.file : reference.quant) = rest;
    return reference;
}

}  // namespace knap
