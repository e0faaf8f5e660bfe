// The rules of a grammar (GBNF) as a table of elements, with repetitions written out. Which tokens
// fit is decided by libllama (grammar_sampler.h), which gets the same rules as text; guesses about
// what comes, which must be cheap, walk along the table (grammar_walk.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace knap {

// The characters that may stand at one place.
class CharacterSet {
  public:
    using Range = std::pair<char32_t, char32_t>;  // first and last

    // Of what is a character in Unicode: no surrogates. Negated: all but those in the ranges.
    CharacterSet(std::vector<Range> ranges, bool is_negated);

    bool is_empty() const { return ranges_.empty(); }
    bool contains(char32_t character) const;
    // The character, if there is exactly one.
    std::optional<char32_t> only() const { return only_; }
    // Whether there are no others than blanks, tabs and line ends.
    bool is_white_space() const { return is_white_space_; }
    std::string text() const;  // [a-z], in GBNF; for a set that is not empty

  private:
    std::vector<Range> ranges_;  // in order, none next to another
    std::optional<char32_t> only_;
    bool is_white_space_;
};

bool is_white_space(char32_t character);

class GrammarRules {
  public:
    struct Element {
        enum class Kind : std::uint8_t { end, characters, token, rule };
        Kind kind = Kind::end;
        std::uint32_t index = 0;  // of the set, the token's name or the rule
    };
    using Sequence = std::vector<Element>;  // without an end

    const Element& element(std::uint32_t index) const { return elements_[index]; }
    const CharacterSet& set(std::uint32_t index) const { return sets_[index]; }
    std::size_t n_rules() const { return rules_.size(); }
    // Where the alternatives of a rule begin. Each goes on to the next `end`.
    std::span<const std::uint32_t> alternatives(std::uint32_t rule) const { return rules_[rule]; }
    std::uint32_t root() const { return root_; }
    // Whether rules name tokens, as in <think> or <[12]>.
    bool names_tokens() const { return !tokens_.empty(); }

    // The rules in GBNF, without repetitions, in rules with names of their own.
    std::string text() const;

    // A rule without alternatives.
    std::uint32_t new_rule();
    // Throws knap::Error when there are too many elements.
    void add_alternative(std::uint32_t rule, const Sequence& sequence);
    Element characters(CharacterSet set);
    Element token(std::string_view name);  // <think>, !<[12]>, ...
    void set_root(std::uint32_t rule) { root_ = rule; }

  private:
    void append_text(std::uint32_t start, std::string& text) const;
    std::string name_of(std::uint32_t rule) const;

    std::vector<Element> elements_;
    std::vector<CharacterSet> sets_;
    std::vector<std::string> tokens_;
    std::vector<std::vector<std::uint32_t>> rules_;
    std::uint32_t root_ = 0;
};

}  // namespace knap
