// The white space of an answer whose grammar leaves it free, as JSON schemas do: guesses it from
// what the answer had at the same place of the grammar or at places of the same kind, else from how
// JSON is mostly written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace knap {

// A place where white space may come.
struct Gap {
    std::uint64_t place = 0;  // in the grammar, whatever the text before
    char32_t before = 0;      // the character before it
    int depth = 0;            // brackets that are open
};

class WhiteSpace {
  public:
    struct Guess {
        std::string text;
        double probability;
    };

    // What comes in the gap, if `next` comes after it.
    Guess guess(const Gap& gap, char32_t next) const;
    // `text` came in the gap, and `next` after it.
    void learn(const Gap& gap, char32_t next, std::string_view text);

  private:
    enum Kind { after_colon, after_comma, after_opening, before_closing, elsewhere, kKinds };
    // A line end with the indentation of its depth, or a text as it is.
    struct Style {
        bool is_indented = false;
        std::string text{};
    };
    // How well a guess is founded, and how often such guesses were right.
    enum Basis { known_place, known_kind, unknown, kBases };
    struct Count {
        double right = 0;
        double all = 0;
    };

    static Kind kind_of(char32_t before, char32_t next);
    std::string written(const Style& style, int depth) const;
    Style style_of(std::string_view text, int depth);
    Basis basis_of(const Gap& gap, Kind kind) const;
    double probability(Basis basis, Kind kind) const;

    std::unordered_map<std::uint64_t, Style> by_place_;
    std::array<Style, kKinds> by_kind_{Style{.text = " "}, Style{.is_indented = true},
                                       Style{.is_indented = true}, Style{.is_indented = true},
                                       Style{}};
    std::array<bool, kKinds> is_known_{};
    std::array<Count, kBases> seen_{};
    std::size_t n_indent_ = 2;  // blanks for each open bracket
};

}  // namespace knap
