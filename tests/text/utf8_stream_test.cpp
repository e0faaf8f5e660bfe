#include "text/utf8_stream.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "text/utf8.h"

namespace knap::utf8_stream_test {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

const std::string kBad(kReplacementCharacter);

std::string convert(std::string_view bytes) {
    Utf8Stream stream;
    std::string text = stream.push(bytes);
    return text + stream.finish();
}

TEST(Utf8Stream, PassesOnValidText) {
    const std::string text = "a\0z é ß € 漢字 😀 \xF4\x8F\xBF\xBF \xED\x9F\xBF \xEE\x80\x80"s;
    EXPECT_EQ(convert(text), text);
}

TEST(Utf8Stream, HoldsBackTheBeginningOfACharacter) {
    Utf8Stream stream;
    EXPECT_EQ(stream.push("a\xF0\x9F"), "a");
    EXPECT_EQ(stream.push("\x98"), "");
    EXPECT_EQ(stream.push("\x80z"), "😀z");
    EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, EndInsideACharacterGivesOneReplacement) {
    EXPECT_EQ(convert("x\xC3"), "x" + kBad);
    EXPECT_EQ(convert("x\xE2\x82"), "x" + kBad);
    EXPECT_EQ(convert("x\xF0\x9F\x98"), "x" + kBad);
}

TEST(Utf8Stream, FinishResetsTheStream) {
    Utf8Stream stream;
    stream.push("\xE2\x82");
    stream.finish();
    EXPECT_EQ(stream.push("\xAC"), kBad);
    EXPECT_EQ(stream.finish(), "");
}

// The examples of the Unicode standard, tables 3-8 to 3-11.
TEST(Utf8Stream, ReplacesMaximalSubparts) {
    const std::string bad2 = kBad + kBad;
    const std::string bad4 = bad2 + bad2;
    // overlong forms
    EXPECT_EQ(convert("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), bad4 + bad4 + "A");
    // surrogates
    EXPECT_EQ(convert("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), bad4 + bad4 + "A");
    // bytes that start no character, code points above U+10FFFF
    EXPECT_EQ(convert("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), bad4 + kBad + "A" + bad2 + "B");
    // sequences that end early
    EXPECT_EQ(convert("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), bad4 + "A");
}

TEST(Utf8Stream, ABrokenCharacterDoesNotSwallowTheNext) {
    EXPECT_EQ(convert("\xC3(\xE2\x82€"), kBad + "(" + kBad + "€");
}

TEST(Utf8Stream, OutputDoesNotDependOnTheSplit) {
    const std::string bytes = "aé\xFF€\xC0\x80😀\xF0\x9F\x98 \xED\xA0\x80\xF4\x90\x80\x80\xE2\x82"s;
    const std::string expected = convert(bytes);
    for (std::size_t first = 0; first <= bytes.size(); ++first) {
        for (std::size_t second = first; second <= bytes.size(); ++second) {
            Utf8Stream stream;
            std::string text = stream.push(std::string_view(bytes).substr(0, first));
            text += stream.push(std::string_view(bytes).substr(first, second - first));
            text += stream.push(std::string_view(bytes).substr(second));
            text += stream.finish();
            ASSERT_EQ(text, expected) << "split at " << first << " and " << second;
        }
    }
}

TEST(Utf8Stream, OutputIsAlwaysValidForEveryPairOfBytes) {
    for (int first = 0; first < 256; ++first) {
        for (int second = 0; second < 256; ++second) {
            const std::string bytes = {static_cast<char>(first), static_cast<char>(second)};
            const std::string text = convert(bytes);
            ASSERT_EQ(whole_utf8_length(text), text.size()) << first << " " << second;
            ASSERT_FALSE(text.empty());
        }
    }
}

// An independent decoder, written from the definition: a code point in its shortest form, no
// surrogate.
bool encodes_a_code_point(std::string_view bytes) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const std::size_t n = bytes.size();
    if (n == 1) {
        return byte(0) < 0x80;
    }
    const unsigned lead_mark = (0xF00u >> n) & 0xFF;
    if ((byte(0) & (0xFFu << (7 - n) & 0xFF)) != lead_mark) {
        return false;
    }
    unsigned code_point = byte(0) & (0x7Fu >> n);
    for (std::size_t i = 1; i < n; ++i) {
        if ((byte(i) & 0xC0) != 0x80) {
            return false;
        }
        code_point = code_point << 6 | (byte(i) & 0x3F);
    }
    const unsigned smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    return code_point >= smallest[n] && code_point <= 0x10FFFF &&
           (code_point < 0xD800 || code_point > 0xDFFF);
}

TEST(Utf8, WholeCharactersAreExactlyTheEncodedCodePoints) {
    // Every lead byte and every second byte, with later bytes at and around their limits.
    const unsigned char later[] = {0x00, 0x7F, 0x80, 0xA5, 0xBF, 0xC0, 0xFF};
    for (int lead = 0; lead < 256; ++lead) {
        for (int second = 0; second < 256; ++second) {
            for (unsigned char third : later) {
                for (unsigned char fourth : later) {
                    const std::string bytes = {static_cast<char>(lead), static_cast<char>(second),
                                               static_cast<char>(third), static_cast<char>(fourth)};
                    std::size_t expected = 0;
                    for (std::size_t n = 1; n <= 4; ++n) {
                        expected = encodes_a_code_point(bytes.substr(0, n)) ? n : expected;
                    }
                    const Utf8Sequence found = first_utf8_sequence(bytes);
                    ASSERT_EQ(found.kind == Utf8Kind::whole ? found.n_bytes : 0, expected)
                        << lead << " " << second << " " << int{third} << " " << int{fourth};
                }
            }
        }
    }
}

}  // namespace
}  // namespace knap::utf8_stream_test
