#include "text/utf8.h"

namespace knap {

namespace {

// What a lead byte requires: the total number of bytes and the range of the second. The range of
// the second byte excludes overlong forms, surrogates and code points above U+10FFFF; later bytes
// are always 80..BF.
struct LeadByte {
    std::size_t n_bytes;  // 0: no character starts with this byte
    unsigned char second_low = 0x80;
    unsigned char second_high = 0xBF;
};

LeadByte classify(unsigned char lead) {
    if (lead < 0x80) {
        return {1};
    }
    if (lead < 0xC2 || lead > 0xF4) {
        return {0};
    }
    if (lead < 0xE0) {
        return {2};
    }
    switch (lead) {
        case 0xE0:
            return {3, 0xA0, 0xBF};
        case 0xED:
            return {3, 0x80, 0x9F};
        case 0xF0:
            return {4, 0x90, 0xBF};
        case 0xF4:
            return {4, 0x80, 0x8F};
        default:
            return {lead < 0xF0 ? std::size_t{3} : std::size_t{4}};
    }
}

}  // namespace

Utf8Sequence first_utf8_sequence(std::string_view bytes) {
    const LeadByte lead = classify(static_cast<unsigned char>(bytes[0]));
    if (lead.n_bytes == 0) {
        return {Utf8Kind::invalid, 1};
    }
    for (std::size_t i = 1; i < lead.n_bytes; ++i) {
        if (i == bytes.size()) {
            return {Utf8Kind::cut, i};
        }
        const auto byte = static_cast<unsigned char>(bytes[i]);
        const unsigned char low = i == 1 ? lead.second_low : 0x80;
        const unsigned char high = i == 1 ? lead.second_high : 0xBF;
        if (byte < low || byte > high) {
            return {Utf8Kind::invalid, i};
        }
    }
    return {Utf8Kind::whole, lead.n_bytes};
}

std::size_t whole_utf8_length(std::string_view bytes) {
    std::size_t length = 0;
    while (length < bytes.size()) {
        const Utf8Sequence sequence = first_utf8_sequence(bytes.substr(length));
        if (sequence.kind != Utf8Kind::whole) {
            break;
        }
        length += sequence.n_bytes;
    }
    return length;
}

char32_t code_point(std::string_view sequence) {
    if (first_utf8_sequence(sequence).kind != Utf8Kind::whole) {
        return code_point(kReplacementCharacter);
    }
    const std::size_t n = sequence.size();
    // The lead byte has as many ones at its beginning as there are bytes, and then a zero.
    char32_t value = static_cast<unsigned char>(sequence[0]) & (n == 1 ? 0x7Fu : 0x7Fu >> n);
    for (const char byte : sequence.substr(1)) {
        value = value << 6 | (static_cast<unsigned char>(byte) & 0x3Fu);
    }
    return value;
}

std::string utf8_of(char32_t character) {
    const auto last = [&](int shift) {
        return static_cast<char>(0x80 | (character >> shift & 0x3F));
    };
    if (character < 0x80) {
        return {static_cast<char>(character)};
    }
    if (character < 0x800) {
        return {static_cast<char>(0xC0 | character >> 6), last(0)};
    }
    if (character < 0x10000) {
        return {static_cast<char>(0xE0 | character >> 12), last(6), last(0)};
    }
    return {static_cast<char>(0xF0 | character >> 18), last(12), last(6), last(0)};
}

}  // namespace knap
