#include "text/grammar/white_space.h"

#include <algorithm>

namespace knap {
namespace {

// The belief in a guess before any was tested, and how many tests it is worth.
constexpr std::array kBeliefs = {0.9, 0.75};
constexpr std::array kUnknownBeliefs = {0.85, 0.6, 0.6, 0.6, 0.95};  // by kind
constexpr double kBeliefWeight = 4;

}  // namespace

WhiteSpace::Kind WhiteSpace::kind_of(char32_t before, char32_t next) {
    if (next == U'}' || next == U']') {
        return before == U'{' || before == U'[' ? elsewhere : before_closing;
    }
    switch (before) {
        case U':':
            return after_colon;
        case U',':
            return after_comma;
        case U'{':
        case U'[':
            return after_opening;
        default:
            return elsewhere;
    }
}

WhiteSpace::Guess WhiteSpace::guess(const Gap& gap, char32_t next) const {
    const Kind kind = kind_of(gap.before, next);
    const Basis basis = basis_of(gap, kind);
    const Style& style = basis == known_place ? by_place_.at(gap.place) : by_kind_[kind];
    const int depth = gap.depth - (kind == before_closing ? 1 : 0);
    return {written(style, depth), probability(basis, kind)};
}

void WhiteSpace::learn(const Gap& gap, char32_t next, std::string_view text) {
    const Kind kind = kind_of(gap.before, next);
    Count& count = seen_[basis_of(gap, kind)];
    count.right += guess(gap, next).text == text ? 1 : 0;
    count.all += 1;
    const Style style = style_of(text, gap.depth - (kind == before_closing ? 1 : 0));
    by_place_[gap.place] = style;
    by_kind_[kind] = style;
    is_known_[kind] = true;
}

WhiteSpace::Basis WhiteSpace::basis_of(const Gap& gap, Kind kind) const {
    if (by_place_.contains(gap.place)) {
        return known_place;
    }
    return is_known_[kind] ? known_kind : unknown;
}

double WhiteSpace::probability(Basis basis, Kind kind) const {
    const double belief = basis == unknown ? kUnknownBeliefs[kind] : kBeliefs[basis];
    const Count& count = seen_[basis];
    return (count.right + kBeliefWeight * belief) / (count.all + kBeliefWeight);
}

std::string WhiteSpace::written(const Style& style, int depth) const {
    return style.is_indented
               ? "\n" + std::string(n_indent_ * static_cast<std::size_t>(std::max(depth, 0)), ' ')
               : style.text;
}

WhiteSpace::Style WhiteSpace::style_of(std::string_view text, int depth) {
    const auto n_open = static_cast<std::size_t>(std::max(depth, 0));
    const bool is_indented = text.starts_with('\n') && text.find_first_not_of(' ', 1) == text.npos;
    if (is_indented && n_open > 0 && (text.size() - 1) % n_open == 0) {
        n_indent_ = (text.size() - 1) / n_open;
        return {.is_indented = true};
    }
    return {.is_indented = is_indented && text.size() == 1, .text = std::string(text)};
}

}  // namespace knap
