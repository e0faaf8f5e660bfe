// One place in an answer under a grammar: from where on the grammar applies, and what fits. Belongs
// to one thread; several states may share a tokenizer.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "knap/types.h"

#include "text/grammar/awaited_text.h"
#include "text/grammar/grammar_sampler.h"
#include "text/grammar/grammar_walk.h"
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
    // grammar may end, or does not apply.
    void keep_fitting(std::vector<Token>& tokens) const;
    // Moves past a token. After an end-of-generation token nothing fits. Returns false, and is of
    // no use from then on, when the token does not fit. For one that triggers a lazy grammar in its
    // middle that shows only here, unless all trigger patterns are plain texts.
    [[nodiscard]] bool accept(Token token);

    // The text that is likely to follow because the grammar leaves no choice but white space; at
    // most `max_bytes`. A copy of a state has none.
    std::string forced_text(std::size_t max_bytes) const;
    bool has_ended() const { return phase_ == Phase::ended; }

  private:
    GrammarState(const Tokenizer& tokenizer,
                 const Grammar& grammar,
                 std::shared_ptr<const GrammarRules> table);

    enum class Phase { unstarted, untriggered, applies, ended };

    // What does not change along a text.
    struct Rules {
        AwaitedStrings starts;                // the grammar applies after one of these
        AwaitedStrings triggers;              // and from one of these on,
        std::vector<Token> trigger_tokens{};  // or one of these
    };

    bool is_waiting() const { return phase_ == Phase::unstarted || phase_ == Phase::untriggered; }
    const AwaitedStrings& awaited() const;
    bool may_decide(Token token) const;
    bool fits_while_waiting(Token token) const;
    bool accept_while_waiting(Token token);
    bool accept_from(std::size_t start);
    bool accept_applying(Token token);
    bool feed(std::string_view text);
    void begin(Phase phase);

    const Tokenizer& tokenizer_;
    std::shared_ptr<const Rules> rules_;
    GrammarSampler sampler_;
    Phase phase_ = Phase::unstarted;
    RecentText recent_;  // while waiting
    std::optional<GrammarWalk> walk_;
};

}  // namespace knap
