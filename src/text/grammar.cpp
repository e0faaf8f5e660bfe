#include "text/grammar.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <iterator>
#include <string_view>

#include "base/error.h"
#include "base/quoted.h"
#include "device/ggml_log.h"
#include "text/grammar_text.h"
#include "text/stderr_capture.h"

namespace knap {
namespace {

constexpr const char* kRoot = "root";

// From this many tokens on, it pays to ask about their bytes first, one after the other as long as
// there are few to choose from.
constexpr std::size_t kManyTokens = 1024;
constexpr std::size_t kFewBytes = 16;
constexpr std::size_t kMaxDepth = 8;

// Whether a token's bytes may begin with the end of `start` and go on, or contain it and go on.
bool may_straddle(std::string_view piece, std::string_view start) {
    const std::size_t inside = piece.find(start);
    if (inside != std::string_view::npos && inside + start.size() < piece.size()) {
        return true;
    }
    for (std::size_t n = 1; n < start.size() && n < piece.size(); ++n) {
        if (piece.starts_with(start.substr(start.size() - n))) {
            return true;
        }
    }
    return false;
}

std::vector<bool> find_straddling(const Tokenizer& tokenizer, std::span<const std::string> starts) {
    std::vector<bool> found(static_cast<std::size_t>(tokenizer.n_vocab()));
    for (Token token = 0; token < tokenizer.n_vocab(); ++token) {
        found[static_cast<std::size_t>(token)] = std::ranges::any_of(
            starts, [&](const auto& one) { return may_straddle(tokenizer.piece(token), one); });
    }
    return found;
}

}  // namespace

// libllama prints what is wrong with a grammar, and returns null.
GrammarState::SamplerHandle GrammarState::parse(const Tokenizer& tokenizer,
                                                const Grammar& grammar) {
    check_grammar_text(grammar.text);
    for (const Token token : grammar.trigger_tokens) {
        if (token < 0 || token >= tokenizer.n_vocab()) {
            fail("`.grammar`: expected trigger tokens from 0 to ", tokenizer.n_vocab() - 1,
                 ", found ", token);
        }
    }
    std::vector<const char*> patterns;
    for (const std::string& pattern : grammar.trigger_patterns) {
        patterns.push_back(pattern.c_str());
    }
    const GgmlErrorCapture errors;
    StderrCapture output;
    SamplerHandle sampler;
    try {
        const bool is_lazy = !patterns.empty() || !grammar.trigger_tokens.empty();
        sampler.reset(
            is_lazy
                ? llama_sampler_init_grammar_lazy_patterns(
                      tokenizer.vocab(), grammar.text.c_str(), kRoot, patterns.data(),
                      patterns.size(), grammar.trigger_tokens.data(), grammar.trigger_tokens.size())
                : llama_sampler_init_grammar(tokenizer.vocab(), grammar.text.c_str(), kRoot));
    } catch (const std::exception& error) {  // of std::regex
        fail("`.grammar`: expected trigger patterns that are regular expressions: ", error.what());
    }
    if (sampler == nullptr) {
        const std::string printed =
            output.take("parse: error parsing grammar: ", concat("\n\n", grammar.text, "\n"));
        fail("`.grammar`: ",
             printed.empty() ? errors.reason() : grammar_fault(printed, grammar.text));
    }
    return sampler;
}

GrammarState::GrammarState(const Tokenizer& tokenizer, const Grammar& grammar)
    : tokenizer_(tokenizer), sampler_(parse(tokenizer, grammar)) {
    Rules rules{.starts_after = grammar.starts_after,
                .has_token_rules = names_tokens(grammar.text)};
    for (const std::string& start : rules.starts_after) {
        if (start.empty()) {
            fail("`.grammar`: expected `starts_after` without empty strings");
        }
        rules.longest_start = std::max(rules.longest_start, start.size());
    }
    if (!rules.starts_after.empty()) {
        rules.may_straddle = find_straddling(tokenizer, rules.starts_after);
        unstarted_.emplace();
    }
    rules_ = std::make_shared<const Rules>(std::move(rules));
    for (const Token token : grammar.prefix) {
        if (!accept(token)) {
            fail(
                "`.grammar`: expected a grammar that describes the end of the prompt, found one "
                "that does not allow ",
                in_quotes(tokenizer.piece(token)));
        }
    }
}

GrammarState::GrammarState(const GrammarState& other)
    : tokenizer_(other.tokenizer_),
      rules_(other.rules_),
      sampler_(llama_sampler_clone(other.sampler_.get())),
      unstarted_(other.unstarted_),
      has_ended_(other.has_ended_) {}

void GrammarState::keep_fitting(std::vector<Token>& tokens) const {
    if (has_ended_) {
        tokens.clear();
        return;
    }
    if (is_waiting()) {
        std::erase_if(tokens, [&](Token token) { return !may_start_with(token); });
        return;
    }
    if (tokens.size() >= kManyTokens && !rules_->has_token_rules) {
        drop_by_bytes(tokens, 0);
    }
    ask(tokens);
}

void GrammarState::ask(std::vector<Token>& tokens) const {
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

bool GrammarState::fits(Token token) const {
    std::vector<Token> one{token};
    ask(one);
    return !one.empty();
}

// Drops tokens that do not fit by their bytes from `depth` on; the grammar stands where they have
// spelled the bytes before. A text fits only if its first byte does, and libllama decodes every
// token that it is asked about, so for a whole vocabulary this is much faster where few bytes fit.
void GrammarState::drop_by_bytes(std::vector<Token>& tokens, std::size_t depth) const {
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
void GrammarState::drop_below(Token byte, std::size_t depth, std::vector<Token>& tokens) const {
    const auto is_below = [&](Token token) {
        const std::string_view piece = tokenizer_.piece(token);
        return piece.size() > depth && piece[depth] == tokenizer_.piece(byte)[0] &&
               !tokenizer_.is_end_of_generation(token);
    };
    std::vector<Token> below;
    std::ranges::copy_if(tokens, std::back_inserter(below), is_below);
    GrammarState next(*this);
    if (below.size() < kManyTokens || !next.advance(byte)) {
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
std::vector<Token> GrammarState::fitting_bytes() const {
    std::vector<Token> tokens;
    for (int byte = 0; byte < 256; ++byte) {
        if (const auto token = tokenizer_.byte_token(static_cast<unsigned char>(byte))) {
            tokens.push_back(*token);
        }
    }
    ask(tokens);
    return tokens;
}

bool GrammarState::accept(Token token) {
    if (!is_waiting()) {
        return !has_ended_ && advance(token);
    }
    if (tokenizer_.is_end_of_generation(token)) {
        has_ended_ = true;
        return true;
    }
    const auto rest = text_after_start(token);
    if (rest) {
        unstarted_.reset();
        return feed(*rest);
    }
    unstarted_->append(tokenizer_.piece(token));
    const std::size_t n_kept = std::min(unstarted_->size(), rules_->longest_start - 1);
    unstarted_->erase(0, unstarted_->size() - n_kept);
    return true;
}

// libllama throws on a token that does not fit, and aborts on one that ends the text too early.
bool GrammarState::advance(Token token) {
    if (!fits(token)) {
        return false;
    }
    if (tokenizer_.is_end_of_generation(token)) {
        has_ended_ = true;
        return true;
    }
    try {
        llama_sampler_accept(sampler_.get(), token);
    } catch (const std::exception&) {
        return false;
    }
    return true;
}

// What the text has after the first of the strings that the grammar starts after, once this token
// completes it; nullopt: it does not. If several are complete, the one that ends first counts.
std::optional<std::string> GrammarState::text_after_start(Token token) const {
    const std::string text = concat(*unstarted_, tokenizer_.piece(token));
    std::size_t end = std::string::npos;
    for (const std::string& start : rules_->starts_after) {
        const std::size_t at = text.find(start);
        if (at != std::string::npos) {
            end = std::min(end, at + start.size());
        }
    }
    return end == std::string::npos ? std::nullopt : std::optional(text.substr(end));
}

// Before the grammar applies, only what a token has after its start must fit.
bool GrammarState::may_start_with(Token token) const {
    if (!rules_->may_straddle[static_cast<std::size_t>(token)]) {
        return true;
    }
    const auto rest = text_after_start(token);
    return !rest || rest->empty() || GrammarState(*this).feed(*rest);
}

// Moves past a text, by whatever tokens: only bytes count. False: it does not fit.
bool GrammarState::feed(std::string_view text) {
    return std::ranges::all_of(tokenizer_.encode_inside(text),
                               [this](Token token) { return advance(token); });
}

std::string GrammarState::forced_text(std::size_t max_bytes) const {
    if (has_ended_ || is_waiting() || max_bytes == 0) {
        return "";
    }
    std::optional<Token> byte = forced_byte();
    if (!byte) {
        return "";
    }
    GrammarState ahead(*this);
    std::string text;
    while (byte && text.size() < max_bytes) {
        text += tokenizer_.piece(*byte);
        byte = ahead.advance(*byte) ? ahead.forced_byte() : std::nullopt;
    }
    return text;
}

std::optional<Token> GrammarState::forced_byte() const {
    const std::vector<Token> bytes = fitting_bytes();
    const bool is_only =
        bytes.size() == 1 && std::ranges::none_of(tokenizer_.end_of_generation(),
                                                  [&](Token token) { return fits(token); });
    return is_only ? std::optional(bytes[0]) : std::nullopt;
}

}  // namespace knap
