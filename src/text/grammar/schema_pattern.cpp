#include "text/grammar/schema_pattern.h"

#include <algorithm>
#include <exception>
#include <string_view>

#include "llama-common/json-schema-to-grammar.h"

#include "base/text.h"

namespace knap {

namespace {

// Inside a negated class: characters that JSON does not write as they are.
constexpr std::string_view kNotInJson = R"("\\\x00-\x1F)";

// What stands in a class for an escape such as \d; empty: none.
std::string_view class_of(char escaped) {
    switch (escaped) {
        case 'd':
            return "0-9";
        case 'w':
            return "A-Za-z0-9_";
        case 's':
            return " ";
        default:
            return "";
    }
}

bool is_punctuation(char c) {
    return std::string_view("^$.*+?()[]{}|/-#&@!%,:;=~_'<> ").find(c) != std::string_view::npos;
}

// Rewrites the inside of ^...$ from left to right.
class PatternWriter {
  public:
    explicit PatternWriter(std::string_view inside) : rest_(inside) {}

    std::optional<std::string> write() {
        while (!rest_.empty() && is_good_) {
            step();
        }
        return is_good_ ? std::optional(written_) : std::nullopt;
    }

  private:
    char take() {
        const char c = rest_.empty() ? '\0' : rest_.front();
        is_good_ = is_good_ && !rest_.empty();
        rest_.remove_prefix(std::min<std::size_t>(rest_.size(), 1));
        return c;
    }

    void step() {
        const char c = take();
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\\') {
            write_escape();
        } else if (c == '[') {
            write_class();
        } else if (c == '.') {
            written_ += concat("[^", kNotInJson, "]");
        } else if (c == '(' && rest_.starts_with('?')) {
            is_good_ = is_good_ && rest_.starts_with("?:");
            written_ += c;
        } else {
            is_good_ = is_good_ && c != '^' && c != '$' && c != '"' && byte >= 0x20;
            written_ += c;
        }
    }

    void write_escape() {
        const char c = take();
        if (const auto members = class_of(c); !members.empty()) {
            written_ += concat("[", members, "]");
        } else if (const auto others = class_of(static_cast<char>(c | 0x20));
                   !others.empty() && c >= 'A' && c <= 'Z') {
            written_ += concat("[^", others, kNotInJson, "]");
        } else {
            // The converter knows the escapes of what it gives a meaning.
            is_good_ = is_good_ && is_punctuation(c);
            written_ += std::string_view("^$.*+?()[]{}|").find(c) == std::string_view::npos
                            ? std::string{c}
                            : std::string{'\\', c};
        }
    }

    void write_class() {
        written_ += '[';
        const bool is_negated = rest_.starts_with('^');
        if (is_negated) {
            written_ += take();
        }
        while (is_good_ && !rest_.starts_with(']')) {
            write_member(take());
        }
        written_ += is_negated ? concat(kNotInJson, "]") : "]";
        take();
    }

    void write_member(char c) {
        if (c != '\\') {
            is_good_ = is_good_ && c != '"' && c != '[' && static_cast<unsigned char>(c) >= 0x20;
            written_ += c;
            return;
        }
        const char escaped = take();
        if (const auto members = class_of(escaped); !members.empty()) {
            written_ += members;
        } else if (escaped == '^') {
            written_ += "\\x5E";
        } else {
            is_good_ = is_good_ && is_punctuation(escaped);
            written_ += std::string_view("[]-").find(escaped) == std::string_view::npos
                            ? std::string{escaped}
                            : std::string{'\\', escaped};
        }
    }

    std::string_view rest_;
    std::string written_;
    bool is_good_ = true;
};

// For patterns that it cannot express, the converter allows any string.
bool is_converted(const std::string& pattern) {
    try {
        const common_json schema{{"type", "string"}, {"pattern", pattern}};
        const std::string grammar = json_schema_to_grammar(schema, true);
        return grammar.find("root ::= string\n") == std::string::npos;
    } catch (const std::exception&) {
        return false;
    }
}

}  // namespace

std::optional<std::string> convertible_pattern(const std::string& pattern) {
    const std::string_view view = pattern;
    if (view.size() < 2 || view.front() != '^' || view.back() != '$') {
        return std::nullopt;
    }
    const auto inside = PatternWriter(view.substr(1, view.size() - 2)).write();
    if (!inside || !is_converted("^" + *inside + "$")) {
        return std::nullopt;
    }
    return "^" + *inside + "$";
}

}  // namespace knap
