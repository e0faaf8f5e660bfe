// libllama's grammars behind a fence: what they throw, abort on or silently leave out is handled
// here. A GrammarState is one place in a text under a grammar. It belongs to one thread; several
// states may share a tokenizer.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "llama.h"

#include "knap/types.h"

#include "text/tokenizer.h"

namespace knap {

class GrammarState {
  public:
    // The start of an answer. Throws knap::Error that tells what is wrong with the grammar, which
    // must not be empty. `tokenizer` must outlive the object.
    GrammarState(const Tokenizer& tokenizer, const Grammar& grammar);
    GrammarState(const GrammarState& other);
    GrammarState& operator=(const GrammarState&) = delete;

    // Removes the tokens that must not come next; end-of-generation tokens stay only where the
    // grammar may end.
    void keep_fitting(std::vector<Token>& tokens) const;
    // Moves past a token. After an end-of-generation token nothing fits. Returns false, and is of
    // no use from then on, when the token does not fit. For one that triggers a lazy grammar in its
    // middle that shows only here.
    [[nodiscard]] bool accept(Token token);

    // The text that must follow here, because no other byte and no end fits; at most `max_bytes`.
    std::string forced_text(std::size_t max_bytes) const;

  private:
    struct SamplerDeleter {
        void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
    };
    using SamplerHandle = std::unique_ptr<llama_sampler, SamplerDeleter>;

    // What does not change along a text.
    struct Rules {
        std::vector<std::string> starts_after{};
        std::size_t longest_start = 0;
        std::vector<bool> may_straddle{};  // [n_vocab], or empty: may contain text after a start
        bool has_token_rules = false;      // the grammar names tokens, not only text
    };

    static SamplerHandle parse(const Tokenizer& tokenizer, const Grammar& grammar);

    bool is_waiting() const { return unstarted_.has_value(); }
    std::optional<std::string> text_after_start(Token token) const;
    bool may_start_with(Token token) const;
    // These look at the grammar as if it applied.
    void ask(std::vector<Token>& tokens) const;
    bool fits(Token token) const;
    bool advance(Token token);
    bool feed(std::string_view text);
    void drop_by_bytes(std::vector<Token>& tokens, std::size_t depth) const;
    void drop_below(Token byte, std::size_t depth, std::vector<Token>& tokens) const;
    std::vector<Token> fitting_bytes() const;
    std::optional<Token> forced_byte() const;

    const Tokenizer& tokenizer_;
    std::shared_ptr<const Rules> rules_;
    SamplerHandle sampler_;
    // The end of the text before any of `starts_after`; nullopt: the grammar applies.
    std::optional<std::string> unstarted_;
    bool has_ended_ = false;
};

}  // namespace knap
