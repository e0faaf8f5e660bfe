#include "text/grammar/grammar_rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include "base/error.h"

namespace knap {
namespace {

constexpr std::size_t kMaxElements = std::size_t{1} << 18;

// A character as literals and classes of GBNF write it.
std::string escaped(char32_t character) {
    if (character < 0x80 && (std::isalnum(static_cast<int>(character)) != 0 || character == U' ')) {
        return {static_cast<char>(character)};
    }
    std::array<char, 12> text{};
    std::snprintf(text.data(), text.size(), "\\U%08X", static_cast<unsigned>(character));
    return text.data();
}

using Ranges = std::vector<CharacterSet::Range>;

constexpr CharacterSet::Range kSurrogates{0xD800, 0xDFFF};
constexpr char32_t kLastCharacter = 0x10FFFF;

// All characters that are in none of the ranges.
Ranges others_than(Ranges ranges) {
    ranges.push_back(kSurrogates);
    std::ranges::sort(ranges);
    Ranges others;
    char32_t next = 0;  // the first that is in no range so far
    for (const auto& [first, last] : ranges) {
        if (first > last || first > kLastCharacter) {
            continue;
        }
        if (first > next) {
            others.emplace_back(next, first - 1);
        }
        next = std::max<char32_t>(next, std::min(last, kLastCharacter) + 1);
    }
    if (next <= kLastCharacter) {
        others.emplace_back(next, kLastCharacter);
    }
    return others;
}

}  // namespace

bool is_white_space(char32_t character) {
    return character == U' ' || character == U'\t' || character == U'\n' || character == U'\r';
}

CharacterSet::CharacterSet(std::vector<Range> ranges, bool is_negated)
    : ranges_(is_negated ? others_than(std::move(ranges))
                         : others_than(others_than(std::move(ranges)))) {
    if (ranges_.size() == 1 && ranges_[0].first == ranges_[0].second) {
        only_ = ranges_[0].first;
    }
    // Tabs and line ends are neighbours.
    is_white_space_ = std::ranges::all_of(ranges_, [](const Range& range) {
        return knap::is_white_space(range.first) && knap::is_white_space(range.second) &&
               range.second - range.first <= 1;
    });
}

bool CharacterSet::contains(char32_t character) const {
    return std::ranges::any_of(ranges_, [&](const Range& range) {
        return range.first <= character && character <= range.second;
    });
}

// Never as [^...]: of a character in several tokens libllama sees the first bytes alone, and then
// takes one that may be excluded for one that is.
std::string CharacterSet::text() const {
    std::string text = "[";
    for (const auto& [first, last] : ranges_) {
        text += escaped(first);
        if (last != first) {
            text += "-" + escaped(last);
        }
    }
    return text + "]";
}

std::uint32_t GrammarRules::new_rule() {
    rules_.emplace_back();
    return static_cast<std::uint32_t>(rules_.size() - 1);
}

void GrammarRules::add_alternative(std::uint32_t rule, const Sequence& sequence) {
    rules_[rule].push_back(static_cast<std::uint32_t>(elements_.size()));
    elements_.insert(elements_.end(), sequence.begin(), sequence.end());
    elements_.push_back({});
    if (elements_.size() > kMaxElements) {
        fail("`.grammar`: expected at most ", kMaxElements,
             " elements with repetitions written out, found more");
    }
}

GrammarRules::Element GrammarRules::characters(CharacterSet set) {
    sets_.push_back(std::move(set));
    return {Element::Kind::characters, static_cast<std::uint32_t>(sets_.size() - 1)};
}

GrammarRules::Element GrammarRules::token(std::string_view name) {
    tokens_.emplace_back(name);
    return {Element::Kind::token, static_cast<std::uint32_t>(tokens_.size() - 1)};
}

std::string GrammarRules::name_of(std::uint32_t rule) const {
    return rule == root_ ? "root" : "r" + std::to_string(rule);
}

void GrammarRules::append_text(std::uint32_t start, std::string& text) const {
    bool is_literal = false;
    for (std::uint32_t i = start; elements_[i].kind != Element::Kind::end; ++i) {
        const Element element = elements_[i];
        const auto only =
            element.kind == Element::Kind::characters ? sets_[element.index].only() : std::nullopt;
        if (is_literal != only.has_value()) {
            text += '"';
            is_literal = !is_literal;
        }
        if (only) {
            text += escaped(*only);
        } else if (element.kind == Element::Kind::characters) {
            text += sets_[element.index].text();
        } else {
            text += " " + (element.kind == Element::Kind::rule ? name_of(element.index)
                                                               : tokens_[element.index]);
        }
    }
    // An empty alternative has to be spelled: otherwise the next line would belong to it.
    text += is_literal ? "\"" : elements_[start].kind == Element::Kind::end ? "\"\"" : "";
}

std::string GrammarRules::text() const {
    std::string text;
    for (std::uint32_t rule = 0; rule < rules_.size(); ++rule) {
        text += name_of(rule);
        std::string_view before = "::=";
        for (const std::uint32_t start : rules_[rule]) {
            text += before;
            append_text(start, text);
            before = "|";
        }
        text += "\n";
    }
    return text;
}

}  // namespace knap
