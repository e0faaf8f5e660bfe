#include <memory>

#include "fuzz/material.h"
#include "fuzz/targets.h"
#include "text/chat_models.h"
#include "text/control_tokens.h"
#include "text/stop_strings.h"
#include "text/utf8.h"
#include "text/utf8_stream.h"

namespace knap::fuzz::tokenizer_target_parts {
namespace {

struct Vocabulary {
    explicit Vocabulary(const test::TinyVocabulary& vocabulary)
        : tokenizer(test::load_vocabulary(vocabulary)), controls(*tokenizer) {}

    std::unique_ptr<Tokenizer> tokenizer;
    ControlTokens controls;
};

// Byte-level BPE, SentencePiece, and BPE that lacks a byte.
const Vocabulary& vocabulary(std::uint32_t i) {
    static const Vocabulary all[] = {Vocabulary(test::chat_vocabulary("")),
                                     Vocabulary(test::spm_vocabulary()),
                                     Vocabulary(test::bpe_vocabulary('q'))};
    return all[i];
}

void encode(const Vocabulary& by, std::string_view text, Choices& choices) {
    const Tokenizer& tokenizer = *by.tokenizer;
    const bool adds = choices.flag();
    const std::vector<Token> tokens = tokenizer.encode(text, adds, choices.flag());
    tokenizer.decode(tokens);
    tokenizer.encode_inside(text);
    const std::string mark = unused_mark({text});
    std::string marked = by.controls.with_marks(text, mark);
    const std::vector<std::size_t> places = remove_marks(marked, mark);
    expect(marked == text, "marks can be removed");
    const std::vector<Token> plain = encode_with_plain(tokenizer, by.controls, text, places);
    for (const ControlTokens::Place& place : by.controls.find(text)) {
        expect(place.begin < place.end && place.end <= text.size(),
               "a control token is in the text");
    }
    tokenizer.decode(plain);
}

void encode_and_decode(const Vocabulary& by, std::string_view text) {
    is_accepted([&] {
        const std::vector<Token> tokens = by.tokenizer->encode(text, false, false);
        expect(by.tokenizer->decode(tokens) == text,
               "byte-level tokens have the bytes of the text");
    });
}

// The text as tokens bring it, some bytes at a time.
std::string streamed(std::string_view text, Choices& choices) {
    Utf8Stream stream;
    std::string shown;
    while (!text.empty()) {
        const std::size_t n = std::min<std::size_t>(1 + choices.below(5), text.size());
        shown += stream.push(text.substr(0, n));
        text.remove_prefix(n);
    }
    return shown + stream.finish();
}

void stop(std::string_view text, Choices& choices) {
    const std::string shown = streamed(text, choices);
    Utf8Stream at_once;
    std::string whole = at_once.push(text);
    whole += at_once.finish();
    expect(shown == whole, "text does not depend on how it is split");
    expect(whole_utf8_length(shown) == shown.size(), "text is UTF-8");
    const std::size_t n_stop = std::min<std::size_t>(choices.below(8), text.size());
    is_accepted([&] {
        StopStrings stops({std::string(text.substr(0, n_stop)), "</s>"});
        StopStrings::Step step = stops.push(shown);
        const std::string all = step.text + (step.stopped ? "" : stops.finish());
        expect(shown.starts_with(all), "what is shown is the beginning of the text");
        expect(step.stopped == (all.size() < shown.size()), "only a stop string ends a text");
    });
}

// Eight choices, and the text.
void run(std::string_view input) {
    Choices choices(input.substr(0, 8));
    const std::string_view text = input.substr(std::min<std::size_t>(input.size(), 8));
    const Vocabulary& by = vocabulary(choices.below(3));
    is_accepted([&] { encode(by, text, choices); });
    encode_and_decode(vocabulary(0), text);
    stop(text, choices);
}

std::vector<std::string> seeds() {
    std::vector<std::string> all;
    for (const std::string& text : string_literals("tests/text")) {
        for (const char kind : {'\0', '\1', '\2'}) {
            all.push_back(std::string(1, kind) + "\1\1\2\3\4\5\6" + text);
        }
    }
    for (const std::string& text : deep_and_long()) {
        all.push_back(std::string("\0\1\1\2\3\4\5\6", 8) + text);
        all.push_back(std::string("\1\1\1\2\3\4\5\6", 8) + text);
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::tokenizer_target_parts

knap::fuzz::Target knap::fuzz::tokenizer_target() {
    using namespace tokenizer_target_parts;
    return {.name = "tokenizer",
            .run = run,
            .seeds = seeds,
            .max_bytes = 1024,
            .word_sources = {"tests/text/chat_models.h", "tests/text/tiny_vocabulary.h",
                             "tests/text/utf8_stream_test.cpp"}};
}
