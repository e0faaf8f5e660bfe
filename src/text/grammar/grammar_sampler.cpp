#include "text/grammar/grammar_sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <regex>
#include <string_view>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text.h"
#include "device/ggml_log.h"
#include "text/grammar/stderr_capture.h"

namespace knap {
namespace {

constexpr const char* kRoot = "root";

// From this many tokens on, it pays to ask about their bytes first, one after the other as long as
// there are few to choose from.
constexpr std::size_t kManyTokens = 1024;
constexpr std::size_t kFewBytes = 16;
constexpr std::size_t kMaxDepth = 8;

// libllama leaks its sampler when std::regex throws.
void check_pattern(const std::string& pattern) {
    try {
        const std::regex compiled(pattern);
    } catch (const std::regex_error& error) {
        fail("`.grammar`: expected trigger patterns that are regular expressions, found ",
             in_quotes(pattern), ": ", error.what());
    }
}

}  // namespace

// libllama prints what is wrong with a grammar, and returns null.
GrammarSampler::Handle GrammarSampler::parse(const Tokenizer& tokenizer,
                                             const GrammarRules& rules,
                                             const Grammar& grammar,
                                             bool is_lazy) {
    for (const Token token : grammar.trigger_tokens) {
        if (token < 0 || token >= tokenizer.n_vocab()) {
            fail("`.grammar`: expected trigger tokens from 0 to ", tokenizer.n_vocab() - 1,
                 ", found ", token);
        }
    }
    std::vector<const char*> patterns;
    for (const std::string& pattern : grammar.trigger_patterns) {
        check_pattern(pattern);
        patterns.push_back(pattern.c_str());
    }
    const std::string text = rules.text();
    const GgmlErrorCapture errors;
    StderrCapture output;
    Handle sampler(is_lazy ? llama_sampler_init_grammar_lazy_patterns(
                                 tokenizer.vocab(), text.c_str(), kRoot, patterns.data(),
                                 patterns.size(), grammar.trigger_tokens.data(),
                                 grammar.trigger_tokens.size())
                           : llama_sampler_init_grammar(tokenizer.vocab(), text.c_str(), kRoot));
    if (sampler == nullptr) {
        const std::string printed =
            output.take("parse: error parsing grammar: ", concat("\n\n", text, "\n"));
        fail("`.grammar`: ", printed.empty() ? errors.reason() : printable(printed));
    }
    return sampler;
}

GrammarSampler::GrammarSampler(const Tokenizer& tokenizer,
                               const GrammarRules& rules,
                               const Grammar& grammar,
                               bool is_lazy)
    : tokenizer_(tokenizer),
      sampler_(parse(tokenizer, rules, grammar, is_lazy)),
      has_token_rules_(rules.names_tokens()) {}

GrammarSampler::GrammarSampler(const GrammarSampler& other)
    : tokenizer_(other.tokenizer_),
      sampler_(llama_sampler_clone(other.sampler_.get())),
      has_token_rules_(other.has_token_rules_) {}

void GrammarSampler::keep_fitting(std::vector<Token>& tokens) const {
    if (tokens.size() >= kManyTokens && !has_token_rules_) {
        drop_by_bytes(tokens, 0);
    }
    ask(tokens);
}

void GrammarSampler::ask(std::vector<Token>& tokens) const {
    std::vector<llama_token_data> data;
    data.reserve(tokens.size());
    for (const Token token : tokens) {
        data.push_back({.id = token, .logit = 0.0f, .p = 0.0f});
    }
    llama_token_data_array candidates{
        .data = data.data(), .size = data.size(), .selected = -1, .sorted = false};
    llama_sampler_apply(sampler_.get(), &candidates);
    tokens.clear();
    for (const llama_token_data& one : data) {
        if (!std::isinf(one.logit)) {
            tokens.push_back(one.id);
        }
    }
}

bool GrammarSampler::fits(Token token) const {
    std::vector<Token> one{token};
    ask(one);
    return !one.empty();
}

// Drops tokens that do not fit by their bytes from `depth` on; the grammar stands where they have
// spelled the bytes before. A text fits only if its first byte does, and libllama decodes every
// token that it is asked about, so for a whole vocabulary this is much faster where few bytes fit.
void GrammarSampler::drop_by_bytes(std::vector<Token>& tokens, std::size_t depth) const {
    std::array<bool, 256> fits;
    for (std::size_t byte = 0; byte < fits.size(); ++byte) {
        fits[byte] = !tokenizer_.byte_token(static_cast<unsigned char>(byte));
    }
    const std::vector<Token> bytes = fitting_bytes();
    for (const Token token : bytes) {
        fits[static_cast<unsigned char>(tokenizer_.piece(token)[0])] = true;
    }
    std::erase_if(tokens, [&](Token token) {
        const std::string_view piece = tokenizer_.piece(token);
        return piece.size() > depth && !fits[static_cast<unsigned char>(piece[depth])] &&
               !tokenizer_.is_end_of_generation(token);
    });
    if (bytes.size() > kFewBytes || depth + 1 == kMaxDepth) {
        return;
    }
    for (const Token byte : bytes) {
        drop_below(byte, depth, tokens);
    }
}

// The same for the tokens with the byte of `byte` at `depth`, by what they have after it.
void GrammarSampler::drop_below(Token byte, std::size_t depth, std::vector<Token>& tokens) const {
    const auto is_below = [&](Token token) {
        const std::string_view piece = tokenizer_.piece(token);
        return piece.size() > depth && piece[depth] == tokenizer_.piece(byte)[0] &&
               !tokenizer_.is_end_of_generation(token);
    };
    std::vector<Token> below;
    std::ranges::copy_if(tokens, std::back_inserter(below), is_below);
    GrammarSampler next(*this);
    if (below.size() < kManyTokens || !next.accept(byte)) {
        return;
    }
    next.drop_by_bytes(below, depth + 1);
    auto kept = below.begin();  // in the order of `tokens`
    std::erase_if(tokens, [&](Token token) {
        const bool stays = !is_below(token) || (kept != below.end() && *kept == token);
        kept += stays && is_below(token) ? 1 : 0;
        return !stays;
    });
}

// The tokens of single bytes that fit.
std::vector<Token> GrammarSampler::fitting_bytes() const {
    std::vector<Token> tokens;
    for (int byte = 0; byte < 256; ++byte) {
        if (const auto token = tokenizer_.byte_token(static_cast<unsigned char>(byte))) {
            tokens.push_back(*token);
        }
    }
    ask(tokens);
    return tokens;
}

// libllama throws on a token that does not fit, and aborts on one that ends the text too early.
bool GrammarSampler::accept(Token token) {
    if (!fits(token)) {
        return false;
    }
    try {
        llama_sampler_accept(sampler_.get(), token);
    } catch (const std::exception&) {
        return false;
    }
    return true;
}

}  // namespace knap
