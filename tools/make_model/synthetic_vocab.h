// A small byte-level BPE vocabulary, padded to any size, so that random models read and write text.
// Token i < 256 is the byte i. Then come a few merges of common English letters, the special
// tokens, and made-up words that no text is ever split into but that decode to readable text when a
// model picks them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace knap {

// GGUF's tokenizer.ggml.token_type.
enum class TokenType : std::int32_t { normal = 1, control = 3 };

struct SyntheticVocab {
    std::vector<std::string> tokens;  // spelled in GPT-2's printable alphabet for bytes
    std::vector<TokenType> types;     // one per token
    std::vector<std::string> merges;  // "left right", highest priority first
    std::uint32_t end_of_text_id;     // <|endoftext|>
    std::uint32_t end_of_turn_id;     // <|im_end|>
    std::string_view chat_template;   // Jinja; libllama recognises it as chatml
};

// Throws knap::Error when `n_vocab` is too small for the bytes, merges and special tokens.
SyntheticVocab make_synthetic_vocab(int n_vocab);

}  // namespace knap
