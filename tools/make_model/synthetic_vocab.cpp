#include "tools/make_model/synthetic_vocab.h"

#include <array>

#include "base/error.h"
#include "base/text.h"

namespace knap {

namespace {

struct Merge {
    std::string_view left;
    std::string_view right;
};

// Every part is a byte or the result of an earlier merge.
constexpr Merge kMerges[] = {
    {" ", "t"},   {" ", "a"},  {"h", "e"},   {"i", "n"}, {"r", "e"},  {"o", "n"},
    {" t", "he"}, {"e", "r"},  {" ", "s"},   {"a", "t"}, {" ", "w"},  {" ", "o"},
    {"e", "n"},   {" ", "c"},  {"i", "t"},   {"i", "s"}, {"a", "n"},  {"o", "r"},
    {"e", "s"},   {" ", "b"},  {"e", "d"},   {" ", "f"}, {"in", "g"}, {" ", "p"},
    {"o", "u"},   {" a", "n"}, {" an", "d"}, {"a", "l"}, {"a", "r"},
};

constexpr std::string_view kSpecialTokens[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};

constexpr std::string_view kChatTemplate =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

// UTF-8 of a code point below 0x800, which is all that the byte alphabet needs.
std::string encode_utf8(int code_point) {
    if (code_point < 0x80) {
        return std::string(1, char(code_point));
    }
    return {char(0xC0 | (code_point >> 6)), char(0x80 | (code_point & 0x3F))};
}

// GPT-2 writes each byte as one printable character: the Latin-1 character if it is visible,
// otherwise the next free one from U+0100 on.
std::array<std::string, 256> make_byte_alphabet() {
    const auto is_visible = [](int byte) {
        return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    };
    std::array<std::string, 256> alphabet;
    int next_free = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
        alphabet[byte] = encode_utf8(is_visible(byte) ? byte : next_free++);
    }
    return alphabet;
}

std::string spell(std::string_view bytes, const std::array<std::string, 256>& alphabet) {
    std::string spelled;
    for (const char byte : bytes) {
        spelled += alphabet[static_cast<unsigned char>(byte)];
    }
    return spelled;
}

// " baba", " babe", ...: the index in base 75, one syllable per digit and at least two, so all
// words differ.
std::string filler_word(int index) {
    constexpr std::string_view kConsonants = "bdfghjklmnprstv";
    constexpr std::string_view kVowels = "aeiou";
    constexpr int kSyllables = int(kConsonants.size() * kVowels.size());
    std::string word;
    for (int n_digits = 0; n_digits < 2 || index > 0; ++n_digits) {
        const int digit = index % kSyllables;
        index /= kSyllables;
        word = std::string{kConsonants[digit / kVowels.size()], kVowels[digit % kVowels.size()]} +
               word;
    }
    return " " + word;
}

}  // namespace

SyntheticVocab make_synthetic_vocab(int n_vocab) {
    constexpr int kSmallest = int(256 + std::size(kMerges) + std::size(kSpecialTokens));
    if (n_vocab < kSmallest) {
        fail("vocabulary: expected at least ", kSmallest, " tokens, found ", n_vocab);
    }
    const auto alphabet = make_byte_alphabet();
    SyntheticVocab vocab{.tokens = {alphabet.begin(), alphabet.end()},
                         .types = {},
                         .merges = {},
                         .end_of_text_id = kSmallest - 3,
                         .end_of_turn_id = kSmallest - 1,
                         .chat_template = kChatTemplate};
    for (const auto& [left, right] : kMerges) {
        vocab.tokens.push_back(spell(concat(left, right), alphabet));
        vocab.merges.push_back(concat(spell(left, alphabet), " ", spell(right, alphabet)));
    }
    vocab.types.assign(vocab.tokens.size(), TokenType::normal);
    vocab.tokens.insert(vocab.tokens.end(), std::begin(kSpecialTokens), std::end(kSpecialTokens));
    vocab.types.resize(vocab.tokens.size(), TokenType::control);
    for (int i = 0; std::ssize(vocab.tokens) < n_vocab; ++i) {
        vocab.tokens.push_back(spell(filler_word(i), alphabet));
    }
    vocab.types.resize(vocab.tokens.size(), TokenType::normal);
    return vocab;
}

}  // namespace knap
