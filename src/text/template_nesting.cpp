#include "text/template_nesting.h"

#include <algorithm>
#include <exception>
#include <string_view>
#include <vector>

#include "llama-common/jinja/lexer.h"

#include "base/error.h"

namespace knap {
namespace {

using Lexed = jinja::token;

// Of 71 templates of known models, the deepest has 13 levels of blocks and 62 parts in a tag. A
// stack of 8 MiB has room for 2,000 brackets, and for 8,000 of the others.
constexpr int kMaxBrackets = 200;
constexpr int kMaxBlocks = 500;
constexpr int kMaxParts = 2000;  // of a tag: each may be inside the one before

bool opens_bracket(Lexed::type type) {
    return type == Lexed::open_paren || type == Lexed::open_square_bracket ||
           type == Lexed::open_curly_bracket;
}

bool closes_bracket(Lexed::type type) {
    return type == Lexed::close_paren || type == Lexed::close_square_bracket ||
           type == Lexed::close_curly_bracket;
}

class NestingCheck {
  public:
    void add(const Lexed& next) {
        if (next.t == Lexed::open_statement || next.t == Lexed::open_expression) {
            tag_ = {};
            is_statement_ = next.t == Lexed::open_statement;
        } else if (next.t == Lexed::close_statement) {
            end_statement();
        } else if (next.t != Lexed::text && next.t != Lexed::comment) {
            add_part(next);
        }
    }

  private:
    struct Tag {
        int n_parts = 0;
        int n_brackets = 0;       // open ones
        std::string_view word{};  // the first
        bool assigns = false;
    };

    void add_part(const Lexed& part) {
        if (tag_.n_parts == 0 && part.t == Lexed::identifier) {
            tag_.word = part.value;
        }
        tag_.assigns |= part.t == Lexed::equals;
        tag_.n_brackets += opens_bracket(part.t) ? 1 : closes_bracket(part.t) ? -1 : 0;
        limit(++tag_.n_parts, kMaxParts, "parts in a tag");
        limit(tag_.n_brackets, kMaxBrackets, "brackets inside each other");
    }

    // `elif` is a block inside the one before it, and ends with it.
    void end_statement() {
        const std::string_view word = is_statement_ ? tag_.word : "";
        if (word.starts_with("end")) {
            n_blocks_ -= blocks_.empty() ? 0 : blocks_.back();
            blocks_.resize(blocks_.size() - (blocks_.empty() ? 0 : 1));
        } else if (word == "elif") {
            blocks_.resize(std::max<std::size_t>(blocks_.size(), 1));
            ++blocks_.back();
            ++n_blocks_;
        } else if (word == "if" || word == "for" || word == "macro" || word == "call" ||
                   word == "filter" || word == "generation" || (word == "set" && !tag_.assigns)) {
            blocks_.push_back(1);
            ++n_blocks_;
        }
        limit(n_blocks_, kMaxBlocks, "blocks inside each other");
    }

    static void limit(int n, int most, const char* what) {
        if (n > most) {
            fail("the chat template: expected at most ", most, " ", what, ", found more");
        }
    }

    Tag tag_;
    bool is_statement_ = false;
    std::vector<int> blocks_;  // open ones, each with its `elif`s
    int n_blocks_ = 0;         // all of these
};

std::vector<Lexed> lexed_parts(const std::string& source) {
    try {
        return jinja::lexer().tokenize(source).tokens;
    } catch (const std::exception&) {
        return {};
    }
}

}  // namespace

void check_template_nesting(const std::string& source) {
    NestingCheck check;
    const std::vector<Lexed> tokens = lexed_parts(source);
    for (const Lexed& next : tokens) {
        check.add(next);
    }
}

}  // namespace knap
