// Vocabularies of a few hundred tokens for tests of the tokenizer, written as GGUF files without
// weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gguf.h"

#include <unistd.h>

namespace knap::test {

// Values of tokenizer.ggml.token_type.
enum TokenType : std::int32_t { normal = 1, unknown = 2, control = 3, byte = 6 };

struct TinyVocabulary {
    std::string model;  // tokenizer.ggml.model: "gpt2" (BPE), "llama" (SPM), "no_vocab"
    std::vector<std::string> tokens = {};
    std::vector<float> scores = {};
    std::vector<std::int32_t> types = {};
    std::vector<std::string> merges = {};
    std::int32_t bos = 0;
    std::int32_t eos = 1;
    bool adds_bos = false;
    bool adds_eos = false;
    std::string chat_template = {};

    void add(std::string text, TokenType type, float score = 0.0f) {
        tokens.push_back(std::move(text));
        types.push_back(type);
        scores.push_back(score);
    }
};

// The character that byte-level BPE writes for a byte: printable bytes are unchanged, the others
// are numbered from U+0100.
inline std::string bpe_character(int byte) {
    const auto is_printable = [](int b) {
        return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
    };
    int code_point = byte;
    if (!is_printable(byte)) {
        code_point = 256;
        for (int lower = 0; lower < byte; ++lower) {
            code_point += is_printable(lower) ? 0 : 1;
        }
    }
    if (code_point < 0x80) {
        return {static_cast<char>(code_point)};
    }
    return {static_cast<char>(0xC0 | code_point >> 6),
            static_cast<char>(0x80 | (code_point & 0x3F))};
}

// Token ids: 0 "<s>", 1 "</s>", then a token per byte except `left_out`, then the merge "he".
inline TinyVocabulary bpe_vocabulary(int left_out = -1) {
    TinyVocabulary vocabulary{.model = "gpt2"};
    vocabulary.add("<s>", control);
    vocabulary.add("</s>", control);
    for (int byte_value = 0; byte_value < 256; ++byte_value) {
        if (byte_value != left_out) {
            vocabulary.add(bpe_character(byte_value), normal);
        }
    }
    vocabulary.add("he", normal);
    vocabulary.merges = {"h e"};
    return vocabulary;
}

// Token ids: 0 "<unk>", 1 "<s>", 2 "</s>", then 256 byte tokens, then a few pieces with "▁" for a
// space.
inline TinyVocabulary spm_vocabulary() {
    TinyVocabulary vocabulary{.model = "llama", .bos = 1, .eos = 2, .adds_bos = true};
    vocabulary.add("<unk>", unknown);
    vocabulary.add("<s>", control);
    vocabulary.add("</s>", control);
    const char* hex = "0123456789ABCDEF";
    for (int value = 0; value < 256; ++value) {
        vocabulary.add(std::string("<0x") + hex[value / 16] + hex[value % 16] + ">", byte);
    }
    vocabulary.add("▁", normal, -1.0f);
    vocabulary.add("h", normal, -2.0f);
    vocabulary.add("e", normal, -3.0f);
    vocabulary.add("he", normal, -0.5f);
    vocabulary.add("▁he", normal, -0.25f);
    return vocabulary;
}

inline void write_strings(gguf_context* gguf,
                          const char* key,
                          const std::vector<std::string>& texts) {
    std::vector<const char*> pointers;
    for (const std::string& text : texts) {
        pointers.push_back(text.c_str());
    }
    gguf_set_arr_str(gguf, key, pointers.data(), pointers.size());
}

inline void write_metadata(gguf_context* gguf, const TinyVocabulary& vocabulary) {
    gguf_set_val_str(gguf, "general.architecture", "llama");
    gguf_set_val_str(gguf, "tokenizer.ggml.model", vocabulary.model.c_str());
    if (vocabulary.model == "no_vocab") {
        return;
    }
    if (vocabulary.model == "gpt2") {
        gguf_set_val_str(gguf, "tokenizer.ggml.pre", "gpt-2");
        write_strings(gguf, "tokenizer.ggml.merges", vocabulary.merges);
    }
    write_strings(gguf, "tokenizer.ggml.tokens", vocabulary.tokens);
    gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, vocabulary.scores.data(),
                      vocabulary.scores.size());
    gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, vocabulary.types.data(),
                      vocabulary.types.size());
    gguf_set_val_u32(gguf, "tokenizer.ggml.bos_token_id", vocabulary.bos);
    gguf_set_val_u32(gguf, "tokenizer.ggml.eos_token_id", vocabulary.eos);
    gguf_set_val_bool(gguf, "tokenizer.ggml.add_bos_token", vocabulary.adds_bos);
    gguf_set_val_bool(gguf, "tokenizer.ggml.add_eos_token", vocabulary.adds_eos);
    if (!vocabulary.chat_template.empty()) {
        gguf_set_val_str(gguf, "tokenizer.chat_template", vocabulary.chat_template.c_str());
    }
}

// A file that is deleted with the object. Every test runs in its own process, so the process id
// makes its name unique.
class VocabularyFile {
  public:
    explicit VocabularyFile(const TinyVocabulary& vocabulary)
        : path_(std::filesystem::temp_directory_path() /
                ("knap-vocabulary-" + std::to_string(getpid()) + ".gguf")) {
        gguf_context* gguf = gguf_init_empty();
        write_metadata(gguf, vocabulary);
        gguf_write_to_file(gguf, path_.string().c_str(), true);
        gguf_free(gguf);
    }
    ~VocabularyFile() { std::filesystem::remove(path_); }
    VocabularyFile(const VocabularyFile&) = delete;
    VocabularyFile& operator=(const VocabularyFile&) = delete;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace knap::test
