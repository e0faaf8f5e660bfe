#include "text/grammar/grammar_text.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text.h"

namespace knap {
namespace {

constexpr std::size_t kShownBytes = 40;

// Calls `visit` for every character outside of literals, character classes and comments.
void visit_outside_literals(std::string_view text, const std::function<void(char)>& visit) {
    char end = '\0';  // of the literal, class or comment
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (end == '\0') {
            visit(c);
            end = c == '"' ? '"' : c == '[' ? ']' : c == '#' ? '\n' : '\0';
        } else if (c == '\\' && end != '\n') {
            ++i;
        } else if (c == end) {
            end = '\0';
        }
    }
}

}  // namespace

void check_grammar_text(std::string_view text) {
    if (text.size() > kMaxGrammarBytes) {
        fail("`.grammar`: expected at most ", kMaxGrammarBytes, " bytes, found ", text.size());
    }
    if (text.find('\0') != std::string_view::npos) {
        fail("`.grammar`: expected a text without zero bytes");
    }
    int depth = 0;
    int deepest = 0;
    visit_outside_literals(text, [&](char c) {
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        deepest = std::max(deepest, depth);
    });
    if (deepest > kMaxGrammarDepth) {
        fail("`.grammar`: expected parentheses at most ", kMaxGrammarDepth, " deep, found ",
             deepest);
    }
}

bool names_tokens(std::string_view text) {
    bool is_found = false;
    visit_outside_literals(text, [&](char c) { is_found = is_found || c == '<'; });
    return is_found;
}

std::string grammar_fault(std::string_view message, std::string_view text) {
    constexpr std::string_view kAt = " at ";
    for (std::size_t at = message.find(kAt); at != std::string_view::npos;
         at = message.find(kAt, at + 1)) {
        const std::string_view rest = message.substr(at + kAt.size());
        if (text.ends_with(rest)) {
            const std::string_view before = text.substr(0, text.size() - rest.size());
            return concat(message.substr(0, at), " in line ", std::ranges::count(before, '\n') + 1,
                          ", found ",
                          rest.empty() ? "the end" : in_quotes(rest.substr(0, kShownBytes)));
        }
    }
    return printable(message);
}

}  // namespace knap
