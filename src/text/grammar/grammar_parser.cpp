#include "text/grammar/grammar_parser.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/quoted.h"
#include "text/grammar/grammar_work.h"
#include "text/grammar/repetition.h"
#include "text/utf8.h"

namespace knap {
namespace {

constexpr std::size_t kShownBytes = 40;

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

class GrammarParser {
  public:
    explicit GrammarParser(std::string_view text) : text_(text), rest_(text) {}

    GrammarRules parse() {
        skip_space(/*crosses_lines=*/true);
        while (!rest_.empty()) {
            parse_rule();
        }
        for (const auto& [name, rule] : names_) {
            if (rules_.alternatives(rule).empty()) {
                fail("`.grammar`: expected a rule named ", in_quotes(name), ", found none");
            }
        }
        const auto root = names_.find("root");
        if (root == names_.end()) {
            fail("`.grammar`: expected a rule named 'root', found none");
        }
        rules_.set_root(root->second);
        return std::move(rules_);
    }

  private:
    using Element = GrammarRules::Element;
    using Sequence = GrammarRules::Sequence;

    [[noreturn]] void refuse(std::string_view expected) const {
        const std::string_view before = text_.substr(0, text_.size() - rest_.size());
        fail("`.grammar`: expected ", expected, " in line ", std::ranges::count(before, '\n') + 1,
             ", found ", rest_.empty() ? "the end" : in_quotes(rest_.substr(0, kShownBytes)));
    }

    void parse_rule() {
        const std::uint32_t rule = rule_named(take_word());
        if (!rules_.alternatives(rule).empty()) {
            refuse("one rule of a name");
        }
        skip_space(false);
        take("::=");
        skip_space(true);
        parse_alternatives(rule, /*is_nested=*/false);
        if (!rest_.empty() && rest_[0] != '\n' && rest_[0] != '\r') {
            refuse("the end of the line");
        }
        skip_space(true);
    }

    void parse_alternatives(std::uint32_t rule, bool is_nested) {
        do {
            skip_space(true);
            rules_.add_alternative(rule, parse_sequence(is_nested));
        } while (take_if('|'));
    }

    Sequence parse_sequence(bool is_nested) {
        Sequence sequence;
        while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')' && rest_[0] != '\n' &&
               rest_[0] != '\r') {
            Sequence item = parse_item();
            skip_space(is_nested);
            while (const auto repetition = parse_repetition(is_nested)) {
                item = repeated(item, *repetition, rules_);
                skip_space(is_nested);
            }
            sequence.insert(sequence.end(), item.begin(), item.end());
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
            if (++depth_ > kMaxGrammarDepth) {
                fail("`.grammar`: expected parentheses at most ", kMaxGrammarDepth,
                     " deep, found more");
            }
            const std::uint32_t rule = rules_.new_rule();
            parse_alternatives(rule, /*is_nested=*/true);
            take(")");
            --depth_;
            return {{Element::Kind::rule, rule}};
        }
        if (rest_[0] == '<' || rest_[0] == '!') {
            return {parse_token()};
        }
        return {{Element::Kind::rule, rule_named(take_word())}};
    }

    Sequence parse_literal() {
        Sequence sequence;
        while (!take_if('"')) {
            const char32_t one = parse_character();
            sequence.push_back(characters({{one, one}}, false));
        }
        return sequence;
    }

    Element parse_class() {
        const bool is_negated = take_if('^');
        std::vector<CharacterSet::Range> ranges;
        if (rest_.starts_with(']')) {
            refuse("characters");
        }
        while (!take_if(']')) {
            const char32_t first = parse_character();
            const bool is_range = rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']';
            take_if(is_range ? '-' : '\0');
            ranges.emplace_back(first, is_range ? parse_character() : first);
        }
        return characters(std::move(ranges), is_negated);
    }

    Element characters(std::vector<CharacterSet::Range> ranges, bool is_negated) {
        CharacterSet set(std::move(ranges), is_negated);
        if (set.is_empty()) {
            refuse("characters of Unicode before this");
        }
        return rules_.characters(std::move(set));
    }

    // <name>, <[number]>, and with ! before it any other token. libllama looks it up.
    Element parse_token() {
        const std::size_t end = rest_.find_first_of(">\n");
        if (end == std::string_view::npos || rest_[end] != '>' ||
            !rest_.substr(rest_[0] == '!' ? 1 : 0).starts_with('<')) {
            refuse("<name>");
        }
        const Element token = rules_.token(rest_.substr(0, end + 1));
        rest_.remove_prefix(end + 1);
        return token;
    }

    char32_t parse_character() {
        if (take_if('\\')) {
            return parse_escape();
        }
        const Utf8Sequence sequence =
            rest_.empty() ? Utf8Sequence{Utf8Kind::cut, 0} : first_utf8_sequence(rest_);
        if (sequence.kind != Utf8Kind::whole) {
            refuse("a character");
        }
        const char32_t character = code_point(rest_.substr(0, sequence.n_bytes));
        rest_.remove_prefix(sequence.n_bytes);
        return character;
    }

    char32_t parse_escape() {
        const char kind = rest_.empty() ? '\0' : rest_[0];
        if (std::string_view("xuUtrn\\\"[]-").find(kind) == std::string_view::npos) {
            refuse("one of xuUtrn\\\"[]- after a backslash");
        }
        rest_.remove_prefix(1);
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
                return static_cast<unsigned char>(kind);
        }
    }

    char32_t parse_hexadecimal(std::size_t n_digits) {
        const auto number = parse_number(rest_.substr(0, n_digits), 16);
        if (!number || rest_.size() < n_digits) {
            refuse("hexadecimal digits");
        }
        rest_.remove_prefix(n_digits);
        return *number;
    }

    // {2}, {2,}, {2,5}, *, + or ?
    std::optional<Repetition> parse_repetition(bool is_nested) {
        if (take_if('*')) {
            return Repetition{0, std::nullopt};
        }
        if (take_if('+')) {
            return Repetition{1, std::nullopt};
        }
        if (take_if('?')) {
            return Repetition{0, 1};
        }
        const std::string_view start = rest_;
        if (!take_if('{')) {
            return std::nullopt;
        }
        Repetition repetition;
        skip_space(is_nested);
        repetition.least = parse_count();
        repetition.most = repetition.least;
        skip_space(is_nested);
        if (take_if(',')) {
            skip_space(is_nested);
            repetition.most = rest_.starts_with('}') ? std::nullopt : std::optional(parse_count());
            skip_space(is_nested);
        }
        take("}");
        if (repetition.most.value_or(repetition.least) < repetition.least) {
            rest_ = start;
            refuse("repetitions from the least to the most");
        }
        return repetition;
    }

    std::uint32_t parse_count() {
        const std::size_t n_digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
        const auto number = parse_number(rest_.substr(0, n_digits), 10);
        if (!number) {
            refuse("a number of repetitions up to 4294967295");
        }
        rest_.remove_prefix(n_digits);
        return *number;
    }

    static std::optional<std::uint32_t> parse_number(std::string_view digits, int base) {
        std::uint32_t value = 0;
        const char* end = digits.data() + digits.size();
        const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
        return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
    }

    std::uint32_t rule_named(std::string_view name) {
        const auto found = names_.find(name);
        return found != names_.end()
                   ? found->second
                   : names_.emplace(std::string(name), rules_.new_rule()).first->second;
    }

    // Also comments.
    void skip_space(bool crosses_lines) {
        while (!rest_.empty()) {
            const char c = rest_[0];
            if (c == '#') {
                rest_.remove_prefix(std::min(rest_.find_first_of("\r\n"), rest_.size()));
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
        if (n == 0) {
            refuse("a name");
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
        if (!rest_.starts_with(text)) {
            refuse(text);
        }
        rest_.remove_prefix(text.size());
    }

    std::string_view text_;
    std::string_view rest_;
    int depth_ = 0;  // of parentheses
    GrammarRules rules_;
    std::map<std::string, std::uint32_t, std::less<>> names_;
};

}  // namespace

std::shared_ptr<const GrammarRules> parse_grammar(std::string_view text) {
    if (text.size() > kMaxGrammarBytes) {
        fail("`.grammar`: expected at most ", kMaxGrammarBytes, " bytes, found ", text.size());
    }
    if (text.find('\0') != std::string_view::npos) {
        fail("`.grammar`: expected a text without zero bytes");
    }
    auto rules = std::make_shared<const GrammarRules>(GrammarParser(text).parse());
    check_grammar_work(*rules);
    return rules;
}

}  // namespace knap
