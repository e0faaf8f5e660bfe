// A place in a text, as the rules of its grammar see it: guesses the text that comes where the
// grammar leaves no choice but white space. A guess is a draft, so it may be wrong; the grammar is
// enforced elsewhere (grammar_sampler.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/grammar_rules.h"
#include "text/grammar/white_space.h"

namespace knap {

class GrammarWalk {
  public:
    // The start of a text. The rules name no tokens.
    explicit GrammarWalk(std::shared_ptr<const GrammarRules> rules);

    // Moves past bytes, which may end inside a character. After bytes that do not fit, nothing is
    // guessed any more.
    void advance(std::string_view bytes);

    // The text that is likely to follow; at most `max_bytes`.
    std::string likely_text(std::size_t max_bytes) const;

  private:
    // The rest of a sequence, and the rests of those that it is a part of.
    struct Rest {
        std::uint32_t element;
        std::shared_ptr<const Rest> after;  // null: the text may end
        int n_after = 0;                    // how many rests follow, each after another
    };
    using Place = Rest;  // at characters

    // What the places allow.
    struct Next {
        bool has_white_space = false;
        bool is_open = false;             // there is a choice of characters, or the text may end
        std::optional<char32_t> only{};   // of those that are not white space
        std::optional<char32_t> blank{};  // the only white space, if there is but one
    };

    // The part of the state that a guess moves along.
    struct Step {
        std::vector<Place> places{};  // no two alike
        bool may_end = false;
        int n_tried = 0;           // ways to get to the places
        char32_t last = 0;         // the character before
        int depth = 0;             // brackets that are open
        std::optional<Gap> gap{};  // the gap that the text stands in
        std::string gap_text{};    // what it has of it
    };

    static bool are_alike(const Rest& a, const Rest& b);
    void add(Rest rest, int n_rules, Step& step) const;
    const CharacterSet& set_at(const Place& place) const;
    Next next_of(const Step& step) const;
    bool take(char32_t character, Step& step) const;
    void enter_gap(Step& step) const;
    bool append(std::string_view white_space, Step& step, std::string& text) const;

    std::shared_ptr<const GrammarRules> rules_;
    Step here_;
    WhiteSpace white_space_;
    std::string cut_;  // the beginning of a character
};

}  // namespace knap
