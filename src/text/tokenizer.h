// Converts text to tokens and back, with libllama's reading of a GGUF file's vocabulary. Immutable
// after load(), so several threads may call any member at once.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "knap/types.h"

struct llama_vocab;
struct llama_model;

namespace knap {

class Tokenizer {
  public:
    // Reads only the vocabulary, no weights. For a split model, pass the first file. The file must
    // have passed check_vocabulary(), because libllama aborts the process on some malformed
    // metadata.
    static std::unique_ptr<Tokenizer> load(const std::filesystem::path& gguf);
    ~Tokenizer();
    Tokenizer(const Tokenizer&) = delete;
    Tokenizer& operator=(const Tokenizer&) = delete;

    // `add_special` adds the tokens that the model expects around a text (often a begin-of-sequence
    // token). `parse_special` reads control tokens that are spelled out, such as "<|im_start|>", as
    // those tokens. The text may be any bytes: those that are not UTF-8 become byte tokens, or
    // U+FFFD when the vocabulary has none.
    std::vector<Token> encode(std::string_view text, bool add_special, bool parse_special) const;

    // The tokens of a text that continues another one: nothing is added to it, not even the space
    // that SPM puts before a text, and control tokens are read as text.
    std::vector<Token> encode_inside(std::string_view text) const;
    // A text of which only some stretches are read for control tokens. A stretch must end where a
    // control token begins or ends: SPM puts a space before each.
    struct Stretch {
        std::string_view text;
        bool parse_special;
    };
    std::vector<Token> encode(std::span<const Stretch> stretches, bool add_special) const;

    // The token's bytes, which may be part of a character. Control tokens are spelled out. The view
    // is valid while the tokenizer lives. Throws knap::Error when there is no such token.
    std::string_view piece(Token token) const;
    std::string decode(std::span<const Token> tokens) const;

    bool is_control(Token token) const;  // whether only `parse_special` reads its text as the token
    bool is_end_of_generation(Token token) const;
    const std::vector<Token>& end_of_generation() const;  // ascending

    // The token for a single byte, if the vocabulary has one.
    std::optional<Token> byte_token(unsigned char byte) const;

    int n_vocab() const;
    // Spelled out; empty when the model has none.
    std::string begin_of_sequence() const;
    std::string end_of_sequence() const;
    const std::string& chat_template() const;  // the model's own template text; may be empty
    const llama_vocab* vocab() const;          // for this folder: libllama's own

    const llama_model* vocabulary() const;  // libllama's model without weights

  private:
    struct Impl;
    explicit Tokenizer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
