// Text to token ids and back, with libllama's reading of a GGUF file's vocabulary.
// Immutable after load(), so every member may be called from several threads at once.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "knap/types.h"

namespace knap {

class Tokenizer {
  public:
    // Reads the vocabulary alone: no weights. Of a split model this is the first file. The file's
    // metadata must have passed check_vocabulary(), because libllama ends the process on some of
    // what that refuses.
    static std::unique_ptr<Tokenizer> load(const std::filesystem::path& gguf);
    ~Tokenizer();
    Tokenizer(const Tokenizer&) = delete;
    Tokenizer& operator=(const Tokenizer&) = delete;

    // `add_special` puts the tokens around the text that the model wants there (often a
    // begin-of-sequence token). `parse_special` reads spelled-out control tokens such as
    // "<|im_start|>" as those tokens. The text may be any bytes: those that are not UTF-8 become
    // byte tokens, or U+FFFD where the vocabulary has none for them.
    std::vector<Token> encode(std::string_view text, bool add_special, bool parse_special) const;

    // The token's bytes, perhaps only a part of a character; control tokens are spelled out. Lives
    // as long as the tokenizer. Throws when there is no such token.
    std::string_view piece(Token token) const;
    std::string decode(std::span<const Token> tokens) const;

    bool is_end_of_generation(Token token) const;
    const std::vector<Token>& end_of_generation() const;  // ascending

    int n_vocab() const;
    bool adds_bos() const;  // whether encode() begins with bos() when asked to add special tokens
    std::optional<Token> bos() const;
    const std::string& chat_template() const;  // the model's own template text; may be empty

  private:
    struct Impl;
    explicit Tokenizer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
