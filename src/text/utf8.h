// Finds the characters in bytes that may not be UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace knap {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8Kind {
    whole,    // one well-formed character (Unicode 15, table 3-7: no overlong forms, no surrogates)
    invalid,  // a maximal subpart of an ill-formed sequence, replaced by one U+FFFD
    cut,      // the text ends inside what may become a character
};

struct Utf8Sequence {
    Utf8Kind kind;
    std::size_t n_bytes;
};

// The first sequence of `bytes`, which must not be empty. Its length is at least 1.
Utf8Sequence first_utf8_sequence(std::string_view bytes);

// The number of leading bytes that form whole characters.
std::size_t whole_utf8_length(std::string_view bytes);

// The number of a character, from the bytes of one `whole` or `invalid` sequence: of an invalid one
// that of kReplacementCharacter.
char32_t code_point(std::string_view sequence);
// The bytes of a character.
std::string utf8_of(char32_t character);

}  // namespace knap
