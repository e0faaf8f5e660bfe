// libllama's grammar sampler behind a fence: what it throws, aborts on or prints is handled here,
// and nothing else includes it. An object is one place in a text under a grammar. It belongs to one
// thread; several may share a tokenizer.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "llama.h"

#include "knap/types.h"

#include "text/grammar/grammar_rules.h"
#include "text/tokenizer.h"

namespace knap {

class GrammarSampler {
  public:
    // The start of a text under `rules`. Uses the triggers of `grammar` if `is_lazy` (llama.cpp's
    // rules for lazy grammars). Throws knap::Error that tells what is wrong with the grammar.
    // `tokenizer` must outlive the object.
    GrammarSampler(const Tokenizer& tokenizer,
                   const GrammarRules& rules,
                   const Grammar& grammar,
                   bool is_lazy);
    GrammarSampler(const GrammarSampler& other);
    GrammarSampler& operator=(const GrammarSampler&) = delete;

    // Removes the tokens that must not come next; end-of-generation tokens stay only where the
    // grammar may end.
    void keep_fitting(std::vector<Token>& tokens) const;
    bool fits(Token token) const;
    // Moves past a token that does not end the text. Returns false, and is of no use from then on,
    // when the token does not fit. For one that triggers a lazy grammar in its middle that shows
    // only here.
    [[nodiscard]] bool accept(Token token);

  private:
    struct Deleter {
        void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
    };
    using Handle = std::unique_ptr<llama_sampler, Deleter>;

    static Handle parse(const Tokenizer& tokenizer,
                        const GrammarRules& rules,
                        const Grammar& grammar,
                        bool is_lazy);
    void ask(std::vector<Token>& tokens) const;
    void drop_by_bytes(std::vector<Token>& tokens, std::size_t depth) const;
    void drop_below(Token byte, std::size_t depth, std::vector<Token>& tokens) const;
    std::vector<Token> fitting_bytes() const;

    const Tokenizer& tokenizer_;
    Handle sampler_;
    bool has_token_rules_;  // the grammar names tokens, not only text
};

}  // namespace knap
