// The rules of a grammar (GBNF) as a table of elements, to walk along a text. What fits is decided
// by libllama (grammar_sampler.h); this is for guesses about what comes, which must be cheap.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace knap {

// The characters that may stand at one place.
class CharacterSet {
  public:
    using Range = std::pair<char32_t, char32_t>;  // first and last

    CharacterSet(std::vector<Range> ranges, bool is_negated);

    bool contains(char32_t character) const;
    // The character, if there is exactly one.
    std::optional<char32_t> only() const { return only_; }
    // Whether there are no others than blanks, tabs and line ends.
    bool is_white_space() const { return is_white_space_; }

  private:
    std::vector<Range> ranges_;
    bool is_negated_;
    std::optional<char32_t> only_;
    bool is_white_space_;
};

bool is_white_space(char32_t character);

class GrammarRules {
  public:
    struct Element {
        enum class Kind : std::uint8_t { end, characters, rule };
        Kind kind = Kind::end;
        std::uint32_t index = 0;  // of the set or the rule
    };

    // Null for a grammar with anything that is not known here, such as names of tokens, and for one
    // that grows too large when its repetitions are written out.
    static std::shared_ptr<const GrammarRules> parse(std::string_view text);

    const Element& element(std::uint32_t index) const { return elements_[index]; }
    const CharacterSet& set(std::uint32_t index) const { return sets_[index]; }
    // Where the alternatives of a rule begin. Each goes on to the next `end`.
    std::span<const std::uint32_t> alternatives(std::uint32_t rule) const { return rules_[rule]; }
    std::uint32_t root() const { return root_; }

  private:
    friend class GrammarParser;

    std::vector<Element> elements_;
    std::vector<CharacterSet> sets_;
    std::vector<std::vector<std::uint32_t>> rules_;
    std::uint32_t root_ = 0;
};

}  // namespace knap
