#include "text/grammar/grammar_rules.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <string>

#include "text/utf8.h"

namespace knap {
namespace {

// Of all alternatives, with repetitions written out.
constexpr std::size_t kMaxElements = std::size_t{1} << 17;

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

}  // namespace

bool is_white_space(char32_t character) {
    return character == U' ' || character == U'\t' || character == U'\n' || character == U'\r';
}

CharacterSet::CharacterSet(std::vector<Range> ranges, bool is_negated)
    : ranges_(std::move(ranges)), is_negated_(is_negated) {
    if (!is_negated_ && ranges_.size() == 1 && ranges_[0].first == ranges_[0].second) {
        only_ = ranges_[0].first;
    }
    // Tabs and line ends are neighbours.
    is_white_space_ = !is_negated_ && std::ranges::all_of(ranges_, [](const Range& range) {
        return knap::is_white_space(range.first) && knap::is_white_space(range.second) &&
               range.second - range.first <= 1;
    });
}

bool CharacterSet::contains(char32_t character) const {
    const bool is_listed = std::ranges::any_of(ranges_, [&](const Range& range) {
        return range.first <= character && character <= range.second;
    });
    return is_listed != is_negated_;
}

// Reads a text that libllama has accepted, so it only gives up where that would not.
class GrammarParser {
  public:
    explicit GrammarParser(std::string_view text) : rest_(text) {}

    std::shared_ptr<const GrammarRules> parse() {
        skip_space(/*crosses_lines=*/true);
        while (!rest_.empty() && is_good_) {
            parse_rule();
            skip_space(/*crosses_lines=*/true);
        }
        const auto root = names_.find("root");
        const bool is_whole =
            is_good_ && root != names_.end() &&
            std::ranges::none_of(rules_.rules_, [](const auto& rule) { return rule.empty(); });
        if (!is_whole) {
            return nullptr;
        }
        rules_.root_ = root->second;
        return std::make_shared<const GrammarRules>(std::move(rules_));
    }

  private:
    using Element = GrammarRules::Element;
    using Sequence = std::vector<Element>;

    void parse_rule() {
        const std::uint32_t rule = rule_named(take_word());
        skip_space(false);
        take("::=");
        skip_space(true);
        parse_alternatives(rule, /*is_nested=*/false);
    }

    void parse_alternatives(std::uint32_t rule, bool is_nested) {
        do {
            skip_space(true);
            add_alternative(rule, parse_sequence(is_nested));
        } while (is_good_ && take_if('|'));
    }

    Sequence parse_sequence(bool is_nested) {
        Sequence sequence;
        while (is_good_ && !rest_.empty() && rest_[0] != '|' && rest_[0] != ')' &&
               rest_[0] != '\n' && rest_[0] != '\r') {
            Sequence item = parse_item();
            skip_space(is_nested);
            repeat(item, sequence);
            skip_space(is_nested);
        }
        return sequence;
    }

    Sequence parse_item() {
        if (take_if('"')) {
            return parse_literal();
        }
        if (take_if('[')) {
            return {parse_class()};
        }
        if (take_if('.')) {
            return {characters({}, /*is_negated=*/true)};
        }
        if (take_if('(')) {
            const std::uint32_t rule = new_rule();
            parse_alternatives(rule, /*is_nested=*/true);
            take(")");
            return {{Element::Kind::rule, rule}};
        }
        return {{Element::Kind::rule, rule_named(take_word())}};
    }

    Sequence parse_literal() {
        Sequence sequence;
        while (is_good_ && !take_if('"')) {
            const char32_t one = parse_character();
            sequence.push_back(characters({{one, one}}, false));
        }
        return sequence;
    }

    Element parse_class() {
        const bool is_negated = take_if('^');
        std::vector<CharacterSet::Range> ranges;
        while (is_good_ && !take_if(']')) {
            const char32_t first = parse_character();
            const bool is_range = rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']';
            take_if(is_range ? '-' : '\0');
            ranges.emplace_back(first, is_range ? parse_character() : first);
        }
        return characters(std::move(ranges), is_negated);
    }

    char32_t parse_character() {
        if (take_if('\\')) {
            return parse_escape();
        }
        if (rest_.empty()) {
            is_good_ = false;
            return 0;
        }
        const Utf8Sequence sequence = first_utf8_sequence(rest_);
        is_good_ = is_good_ && sequence.kind == Utf8Kind::whole;
        const char32_t character = code_point(rest_.substr(0, sequence.n_bytes));
        rest_.remove_prefix(sequence.n_bytes);
        return character;
    }

    char32_t parse_escape() {
        const char kind = rest_.empty() ? '\0' : rest_[0];
        rest_.remove_prefix(rest_.empty() ? 0 : 1);
        switch (kind) {
            case 'x':
                return parse_hexadecimal(2);
            case 'u':
                return parse_hexadecimal(4);
            case 'U':
                return parse_hexadecimal(8);
            case 't':
                return U'\t';
            case 'r':
                return U'\r';
            case 'n':
                return U'\n';
            default:
                is_good_ = is_good_ && kind != '\0';
                return static_cast<unsigned char>(kind);
        }
    }

    char32_t parse_hexadecimal(std::size_t n_digits) {
        return parse_number(rest_.substr(0, n_digits), 16, n_digits);
    }

    // {2}, {2,}, {2,5}, *, + or ?; without any, the item stands once.
    void repeat(const Sequence& item, Sequence& out) {
        std::uint32_t least = 1;
        std::optional<std::uint32_t> most = 1;
        if (take_if('*')) {
            least = 0;
            most.reset();
        } else if (take_if('+')) {
            most.reset();
        } else if (take_if('?')) {
            least = 0;
        } else if (take_if('{')) {
            least = parse_count();
            most = least;
            skip_space(false);
            if (take_if(',')) {
                skip_space(false);
                most = rest_.starts_with('}') ? std::nullopt : std::optional(parse_count());
                skip_space(false);
            }
            take("}");
        }
        is_good_ = is_good_ && most.value_or(least) >= least && most.value_or(least) < kMaxElements;
        for (std::uint32_t i = 0; i < least && is_good_; ++i) {
            out.insert(out.end(), item.begin(), item.end());
            is_good_ = out.size() <= kMaxElements;
        }
        if (!is_good_ || most == least) {
            return;
        }
        out.push_back({Element::Kind::rule, most ? up_to(*most - least, item) : any_number(item)});
    }

    std::uint32_t any_number(const Sequence& item) {
        const std::uint32_t rule = new_rule();
        add_optional(rule, item, rule);
        return rule;
    }

    std::uint32_t up_to(std::uint32_t n, const Sequence& item) {
        std::optional<std::uint32_t> inner;
        for (std::uint32_t i = 0; i < n && is_good_; ++i) {
            const std::uint32_t rule = new_rule();
            add_optional(rule, item, inner);
            inner = rule;
        }
        return inner.value_or(0);
    }

    // rule ::= item next | ""
    void add_optional(std::uint32_t rule, Sequence item, std::optional<std::uint32_t> next) {
        if (next) {
            item.push_back({Element::Kind::rule, *next});
        }
        add_alternative(rule, item);
        add_alternative(rule, {});
    }

    std::uint32_t parse_count() {
        std::size_t n_digits = 0;
        while (n_digits < rest_.size() &&
               std::isdigit(static_cast<unsigned char>(rest_[n_digits]))) {
            ++n_digits;
        }
        return parse_number(rest_.substr(0, n_digits), 10, n_digits);
    }

    std::uint32_t parse_number(std::string_view digits, int base, std::size_t n_digits) {
        std::uint32_t value = 0;
        const char* end = digits.data() + digits.size();
        const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
        is_good_ = is_good_ && error == std::errc() && stop == end && digits.size() == n_digits;
        rest_.remove_prefix(digits.size());
        return value;
    }

    Element characters(std::vector<CharacterSet::Range> ranges, bool is_negated) {
        rules_.sets_.emplace_back(std::move(ranges), is_negated);
        return {Element::Kind::characters, static_cast<std::uint32_t>(rules_.sets_.size() - 1)};
    }

    std::uint32_t new_rule() {
        rules_.rules_.emplace_back();
        return static_cast<std::uint32_t>(rules_.rules_.size() - 1);
    }

    std::uint32_t rule_named(std::string_view name) {
        is_good_ = is_good_ && !name.empty();
        const auto found = names_.find(name);
        return found != names_.end() ? found->second
                                     : names_.emplace(std::string(name), new_rule()).first->second;
    }

    void add_alternative(std::uint32_t rule, const Sequence& sequence) {
        std::vector<Element>& elements = rules_.elements_;
        rules_.rules_[rule].push_back(static_cast<std::uint32_t>(elements.size()));
        elements.insert(elements.end(), sequence.begin(), sequence.end());
        elements.push_back({});
        is_good_ = is_good_ && elements.size() <= kMaxElements;
    }

    // Also comments.
    void skip_space(bool crosses_lines) {
        while (!rest_.empty()) {
            const char c = rest_[0];
            if (c == '#') {
                rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
            } else if (c == ' ' || c == '\t' || (crosses_lines && (c == '\n' || c == '\r'))) {
                rest_.remove_prefix(1);
            } else {
                return;
            }
        }
    }

    std::string_view take_word() {
        std::size_t n = 0;
        while (n < rest_.size() && is_word(rest_[n])) {
            ++n;
        }
        const std::string_view word = rest_.substr(0, n);
        rest_.remove_prefix(n);
        return word;
    }

    bool take_if(char c) {
        const bool is_there = c != '\0' && rest_.starts_with(c);
        rest_.remove_prefix(is_there ? 1 : 0);
        return is_there;
    }

    void take(std::string_view text) {
        is_good_ = is_good_ && rest_.starts_with(text);
        rest_.remove_prefix(is_good_ ? text.size() : 0);
    }

    std::string_view rest_;
    bool is_good_ = true;
    GrammarRules rules_;
    std::map<std::string, std::uint32_t, std::less<>> names_;
};

std::shared_ptr<const GrammarRules> GrammarRules::parse(std::string_view text) {
    return GrammarParser(text).parse();
}

}  // namespace knap
