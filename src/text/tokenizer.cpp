#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "llama.h"

#include "base/error.h"
#include "device/ggml_log.h"
#include "text/utf8.h"

namespace knap {

namespace {

struct ModelDeleter {
    void operator()(llama_model* model) const { llama_model_free(model); }
};
using ModelHandle = std::unique_ptr<llama_model, ModelDeleter>;

ModelHandle load_vocabulary(const std::filesystem::path& gguf) {
    install_ggml_log();
    const GgmlErrorCapture errors;
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    ModelHandle model(llama_model_load_from_file(gguf.string().c_str(), params));
    if (!model) {
        fail(gguf.string(), ": libllama cannot read the vocabulary: ", errors.reason());
    }
    return model;
}

[[noreturn]] void fail_too_long(std::string_view text) {
    fail("a text of ", text.size(), " bytes is too long to tokenize");
}

[[noreturn]] void fail_without_token() {
    fail("the model's vocabulary lacks a token for a byte of the text");
}

std::optional<Token> present(llama_token token) {
    return token == LLAMA_TOKEN_NULL ? std::nullopt : std::optional<Token>(token);
}

std::vector<Token> find_end_of_generation(const llama_vocab* vocab) {
    std::vector<Token> tokens;
    for (Token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
        if (llama_vocab_is_eog(vocab, token)) {
            tokens.push_back(token);
        }
    }
    return tokens;
}

// The bytes of all tokens, concatenated: one block of memory however large the vocabulary.
class PieceTable {
  public:
    explicit PieceTable(const llama_vocab* vocab) {
        const int n_tokens = llama_vocab_n_tokens(vocab);
        ends_.reserve(n_tokens);
        for (Token token = 0; token < n_tokens; ++token) {
            append(vocab, token);
        }
        bytes_.shrink_to_fit();
    }

    int size() const { return static_cast<int>(ends_.size()); }

    std::string_view operator[](Token token) const {
        const std::size_t begin = token == 0 ? 0 : ends_[token - 1];
        return std::string_view(bytes_).substr(begin, ends_[token] - begin);
    }

  private:
    void append(const llama_vocab* vocab, Token token) {
        std::array<char, 64> small;
        const auto write = [&](char* to, std::size_t space) {
            return llama_token_to_piece(vocab, token, to, static_cast<int>(space), 0, true);
        };
        const int n_bytes = write(small.data(), small.size());
        if (n_bytes >= 0) {
            bytes_.append(small.data(), n_bytes);
        } else {
            const std::size_t begin = bytes_.size();
            bytes_.resize(begin + static_cast<std::size_t>(-n_bytes));
            write(bytes_.data() + begin, bytes_.size() - begin);
        }
        ends_.push_back(bytes_.size());
    }

    std::string bytes_;
    std::vector<std::size_t> ends_;
};

// The token for each single byte, if the vocabulary has one.
using ByteTokens = std::array<std::optional<Token>, 256>;

ByteTokens find_byte_tokens(const PieceTable& pieces, const llama_vocab* vocab) {
    ByteTokens tokens;
    for (Token token = 0; token < pieces.size(); ++token) {
        const std::string_view bytes = pieces[token];
        if (bytes.size() != 1 || llama_vocab_is_control(vocab, token)) {
            continue;
        }
        std::optional<Token>& slot = tokens[static_cast<unsigned char>(bytes[0])];
        slot = slot.value_or(token);
    }
    return tokens;
}

}  // namespace

struct Tokenizer::Impl {
    explicit Impl(ModelHandle handle);

    using Tokens = std::vector<Token>;
    void append_text(std::string_view text, bool parse_special, Tokens& tokens) const;
    void append_rest(std::string_view text, bool parse_special, Tokens& tokens) const;
    void append_stretch(std::string_view stretch, bool parse_special, Tokens& tokens) const;
    void append_inner_stretch(std::string_view stretch, bool parse_special, Tokens& tokens) const;
    void append_broken(std::string_view bytes, Tokens& tokens) const;

    ModelHandle model;
    const llama_vocab* vocab;  // belongs to `model`
    bool is_bpe;               // otherwise SPM
    PieceTable pieces;
    ByteTokens byte_tokens;
    std::vector<Token> end_of_generation;
    std::optional<Token> first;  // added before a text
    std::optional<Token> last;   // added after a text
    std::string chat_template;
};

Tokenizer::Impl::Impl(ModelHandle handle)
    : model(std::move(handle)),
      vocab(llama_model_get_vocab(model.get())),
      is_bpe(llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_BPE),
      pieces(vocab),
      byte_tokens(find_byte_tokens(pieces, vocab)),
      end_of_generation(find_end_of_generation(vocab)),
      first(llama_vocab_get_add_bos(vocab) ? present(llama_vocab_bos(vocab)) : std::nullopt),
      last(llama_vocab_get_add_eos(vocab) ? present(llama_vocab_eos(vocab)) : std::nullopt) {
    const char* text = llama_model_chat_template(model.get(), nullptr);
    chat_template = text == nullptr ? "" : text;
}

// Passes only the well-formed stretches of a text to libllama. For other bytes its BPE gives
// U+FFFD, or throws on what looks like a code point above U+10FFFF. Its SPM treats the bytes after
// a broken one, including spaces, as part of the same character.
void Tokenizer::Impl::append_text(std::string_view text, bool parse_special, Tokens& tokens) const {
    const std::size_t n_leading = whole_utf8_length(text);
    append_stretch(text.substr(0, n_leading), parse_special, tokens);
    append_rest(text.substr(n_leading), parse_special, tokens);
}

// From the first byte that is not part of a character on.
void Tokenizer::Impl::append_rest(std::string_view text, bool parse_special, Tokens& tokens) const {
    while (!text.empty()) {
        const std::size_t n_broken = first_utf8_sequence(text).n_bytes;
        append_broken(text.substr(0, n_broken), tokens);
        text.remove_prefix(n_broken);
        const std::size_t n_whole = whole_utf8_length(text);
        append_inner_stretch(text.substr(0, n_whole), parse_special, tokens);
        text.remove_prefix(n_whole);
    }
}

// Adds no tokens around the text: encode() does that once per text, not per stretch.
void Tokenizer::Impl::append_stretch(std::string_view stretch,
                                     bool parse_special,
                                     Tokens& tokens) const {
    const std::size_t begin = tokens.size();
    const auto write = [&](std::size_t space) {
        tokens.resize(begin + space);
        return llama_tokenize(vocab, stretch.data(), static_cast<int>(stretch.size()),
                              tokens.data() + begin, static_cast<int>(space), false, parse_special);
    };
    try {
        int n_tokens = write(stretch.size());
        if (n_tokens < 0 && n_tokens != std::numeric_limits<int>::min()) {
            // More tokens than bytes: SPM may prepend a space, or spell a space as three bytes.
            n_tokens = write(static_cast<std::size_t>(-n_tokens));
        }
        if (n_tokens < 0) {
            fail_too_long(stretch);
        }
        tokens.resize(begin + n_tokens);
    } catch (const std::out_of_range&) {
        fail_without_token();
    }
}

// SPM prepends a space to every input, which is right only at the start of a text. So a byte that
// merges with nothing is put before the stretch. It takes the space, and both are dropped.
void Tokenizer::Impl::append_inner_stretch(std::string_view stretch,
                                           bool parse_special,
                                           Tokens& tokens) const {
    if (is_bpe || stretch.empty()) {
        append_stretch(stretch, parse_special, tokens);
        return;
    }
    constexpr char kGuard = '\x80';
    Tokens guarded;
    append_stretch(kGuard + std::string(stretch), parse_special, guarded);
    const auto guard = std::find(guarded.begin(), guarded.end(), byte_tokens[0x80]);
    if (guard == guarded.end()) {
        fail_without_token();
    }
    tokens.insert(tokens.end(), guard + 1, guarded.end());
}

void Tokenizer::Impl::append_broken(std::string_view bytes, Tokens& tokens) const {
    const auto token_of = [&](char byte) { return byte_tokens[static_cast<unsigned char>(byte)]; };
    if (!std::all_of(bytes.begin(), bytes.end(), token_of)) {
        append_inner_stretch(kReplacementCharacter, false, tokens);
        return;
    }
    for (char byte : bytes) {
        tokens.push_back(*token_of(byte));
    }
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

std::unique_ptr<Tokenizer> Tokenizer::load(const std::filesystem::path& gguf) {
    ModelHandle model = load_vocabulary(gguf);
    const auto type = llama_vocab_type(llama_model_get_vocab(model.get()));
    if (type != LLAMA_VOCAB_TYPE_SPM && type != LLAMA_VOCAB_TYPE_BPE) {
        fail(gguf.string(), ": expected an SPM or BPE vocabulary, found ",
             type == LLAMA_VOCAB_TYPE_NONE ? "none" : "another kind");
    }
    return std::unique_ptr<Tokenizer>(new Tokenizer(std::make_unique<Impl>(std::move(model))));
}

std::vector<Token> Tokenizer::encode(std::string_view text,
                                     bool add_special,
                                     bool parse_special) const {
    const Stretch stretch{text, parse_special};
    return encode({&stretch, 1}, add_special);
}

std::vector<Token> Tokenizer::encode(std::span<const Stretch> stretches, bool add_special) const {
    std::vector<Token> tokens;
    if (add_special && impl_->first) {
        tokens.push_back(*impl_->first);
    }
    for (const Stretch& stretch : stretches) {
        if (stretch.text.size() >= std::numeric_limits<std::int32_t>::max()) {
            fail_too_long(stretch.text);
        }
        impl_->append_text(stretch.text, stretch.parse_special, tokens);
    }
    if (add_special && impl_->last) {
        tokens.push_back(*impl_->last);
    }
    return tokens;
}

std::vector<Token> Tokenizer::encode_inside(std::string_view text) const {
    std::vector<Token> tokens;
    const std::size_t n_leading = whole_utf8_length(text);
    impl_->append_inner_stretch(text.substr(0, n_leading), false, tokens);
    impl_->append_rest(text.substr(n_leading), false, tokens);
    return tokens;
}

std::string_view Tokenizer::piece(Token token) const {
    if (token < 0 || token >= n_vocab()) {
        fail("expected a token from 0 to ", n_vocab() - 1, ", found ", token);
    }
    return impl_->pieces[token];
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
    std::string text;
    for (Token token : tokens) {
        text += piece(token);
    }
    return text;
}

bool Tokenizer::is_control(Token token) const {
    const auto attributes = llama_vocab_get_attr(impl_->vocab, token);
    return (attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) != 0;
}

bool Tokenizer::is_end_of_generation(Token token) const {
    return std::binary_search(impl_->end_of_generation.begin(), impl_->end_of_generation.end(),
                              token);
}

const std::vector<Token>& Tokenizer::end_of_generation() const {
    return impl_->end_of_generation;
}

std::optional<Token> Tokenizer::byte_token(unsigned char byte) const {
    return impl_->byte_tokens[byte];
}

const llama_vocab* Tokenizer::vocab() const {
    return impl_->vocab;
}

int Tokenizer::n_vocab() const {
    return impl_->pieces.size();
}

std::string Tokenizer::begin_of_sequence() const {
    const std::optional<Token> token = present(llama_vocab_bos(impl_->vocab));
    return token ? std::string(piece(*token)) : "";
}

std::string Tokenizer::end_of_sequence() const {
    const std::optional<Token> token = present(llama_vocab_eos(impl_->vocab));
    return token ? std::string(piece(*token)) : "";
}

const std::string& Tokenizer::chat_template() const {
    return impl_->chat_template;
}

const llama_model* Tokenizer::vocabulary() const {
    return impl_->model.get();
}

}  // namespace knap
