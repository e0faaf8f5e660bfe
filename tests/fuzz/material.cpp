#include "fuzz/material.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <optional>

#include "fuzz/target.h"

namespace knap::fuzz {
namespace {

namespace fs = std::filesystem;

// A reader of C++ that knows literals and comments and nothing else.
class LiteralReader {
  public:
    explicit LiteralReader(std::string_view source) : rest_(source) {}

    std::vector<std::string> read() {
        while (!rest_.empty()) {
            step();
        }
        return std::move(literals_);
    }

  private:
    void step() {
        if (rest_.starts_with("//")) {
            skip_to("\n");
        } else if (rest_.starts_with("/*")) {
            skip_to("*/");
        } else if (rest_.starts_with("#include")) {
            skip_to("\n");
        } else if (rest_.starts_with("R\"")) {
            read_raw();
        } else if (rest_.starts_with('"')) {
            read_quoted();
        } else if (rest_.starts_with('\'') && !follows_a_digit_) {
            skip_character();
        } else {
            const auto c = static_cast<unsigned char>(rest_.front());
            continues_ = continues_ && std::isspace(c) != 0;
            follows_a_digit_ = std::isxdigit(c) != 0;
            rest_.remove_prefix(1);
        }
    }

    void skip_to(std::string_view end) {
        const std::size_t at = rest_.find(end);
        rest_.remove_prefix(at == rest_.npos ? rest_.size() : at + end.size());
    }

    void skip_character() {
        std::size_t at = 1;
        while (at < rest_.size() && rest_[at] != '\'') {
            at += rest_[at] == '\\' ? 2 : 1;
        }
        rest_.remove_prefix(std::min(at + 1, rest_.size()));
    }

    void read_raw() {
        const std::size_t open = std::min(rest_.find('('), rest_.size() - 1);
        const std::string end = ")" + std::string(rest_.substr(2, open - 2)) + "\"";
        rest_.remove_prefix(open + 1);
        const std::size_t at = std::min(rest_.find(end), rest_.size());
        add(std::string(rest_.substr(0, at)));
        rest_.remove_prefix(std::min(at + end.size(), rest_.size()));
    }

    void read_quoted() {
        std::string text;
        rest_.remove_prefix(1);
        while (!rest_.empty() && rest_.front() != '"') {
            if (rest_.front() == '\\' && rest_.size() > 1) {
                text += escaped();
            } else {
                text += rest_.front();
                rest_.remove_prefix(1);
            }
        }
        rest_.remove_prefix(std::min<std::size_t>(1, rest_.size()));
        add(text);
    }

    char escaped() {
        const char kind = rest_[1];
        rest_.remove_prefix(2);
        if (kind == 'x') {
            return number(16, rest_.size());
        }
        if (kind >= '0' && kind <= '7') {
            rest_ = std::string_view(rest_.data() - 1, rest_.size() + 1);
            return number(8, 3);
        }
        constexpr std::string_view kKinds = "ntrabfv";
        constexpr std::string_view kMeanings = "\n\t\r\a\b\f\v";
        const std::size_t at = kKinds.find(kind);
        return at == kKinds.npos ? kind : kMeanings[at];
    }

    char number(int base, std::size_t n_most) {
        int value = 0;
        for (; n_most > 0 && !rest_.empty(); --n_most) {
            const auto c = static_cast<unsigned char>(rest_.front());
            const int digit = std::isdigit(c) != 0 ? c - '0' : std::tolower(c) - 'a' + 10;
            if (std::isxdigit(c) == 0 || digit >= base) {
                break;
            }
            value = (value * base + digit) & 0xff;
            rest_.remove_prefix(1);
        }
        return static_cast<char>(value);
    }

    void add(std::string text) {
        if (continues_) {
            literals_.back() += text;
        } else {
            literals_.push_back(std::move(text));
        }
        continues_ = true;
    }

    std::string_view rest_;
    std::vector<std::string> literals_;
    bool continues_ = false;  // nothing but space since the last literal
    bool follows_a_digit_ = false;
};

std::vector<fs::path> sources_at(const fs::path& path) {
    if (!fs::is_directory(path)) {
        return {path};
    }
    std::vector<fs::path> sources;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
        const fs::path extension = entry.path().extension();
        if (extension == ".cpp" || extension == ".h") {
            sources.push_back(entry.path());
        }
    }
    std::ranges::sort(sources);
    return sources;
}

}  // namespace

fs::path in_repository(std::string_view path) {
    return fs::path(KNAP_ROOT) / path;
}

std::vector<std::string> string_literals(std::string_view path) {
    std::vector<std::string> literals;
    for (const fs::path& source : sources_at(in_repository(path))) {
        std::ranges::move(LiteralReader(bytes_of(source)).read(), std::back_inserter(literals));
    }
    std::erase_if(literals, [](const std::string& text) { return text.empty(); });
    return literals;
}

std::vector<std::string> code_in(std::string_view document) {
    const std::string text = bytes_of(in_repository(document));
    std::vector<std::string> pieces;
    for (std::size_t at = text.find('`'); at != text.npos; at = text.find('`', at)) {
        const std::string_view mark = text.compare(at, 3, "```") == 0 ? "```" : "`";
        const std::size_t begin = at + mark.size();
        const std::size_t end = std::min(text.find(mark, begin), text.size());
        pieces.push_back(text.substr(begin, end - begin));
        at = std::min(end + mark.size(), text.size());
    }
    return pieces;
}

std::vector<std::string> deep_and_long() {
    constexpr int kTimes = 8'000;
    const auto times = [](std::string_view text) {
        std::string all;
        for (int i = 0; i < kTimes; ++i) {
            all += text;
        }
        return all;
    };
    std::vector<std::string> texts;
    for (const char* text : {"[",  "{\"a\":", "(",  "<",  "((",          "a",    " ",
                             "\n", "\"",      "\\", ",",  "{\"a\":[",    "\xff", "\xe2\x96\x81",
                             "!",  "-",       "0",  "a=", "<tool_call>", "not "}) {
        texts.push_back(times(text));
    }
    texts.push_back(times("[") + times("]"));
    texts.push_back(times("{\"a\":") + "1" + times("}"));
    return texts;
}

std::vector<std::string> with_any(const std::vector<std::string>& texts,
                                  const std::vector<std::string_view>& words) {
    std::vector<std::string> found;
    std::ranges::copy_if(texts, std::back_inserter(found), [&](const std::string& text) {
        return std::ranges::any_of(
            words, [&](std::string_view word) { return text.find(word) != text.npos; });
    });
    return found;
}

}  // namespace knap::fuzz
