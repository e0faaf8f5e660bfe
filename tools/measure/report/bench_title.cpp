#include "tools/measure/report/bench_title.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace knap {
namespace {

bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

std::string upper(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char letter) {
        return static_cast<char>(letter < 0x80 ? std::toupper(letter) : letter);
    });
    return text;
}

std::vector<std::string> title_words(std::string_view text) {
    constexpr std::string_view kBetween = "-_ ";
    std::vector<std::string> words;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of(kBetween), text.size());
        if (end > 0) {
            words.emplace_back(text.substr(0, end));
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return words;
}

// "135M", "0.6B", "8x7B"; the unit must be a capital.
bool is_size(const std::string& word) {
    constexpr std::string_view kUnits = "KMBT";
    return word.size() > 1 && is_digit(word.front()) && kUnits.find(word.back()) != kUnits.npos &&
           std::all_of(word.begin(), word.end() - 1, [](char letter) {
               return is_digit(letter) || letter == '.' || letter == 'x';
           });
}

bool has_size(const std::vector<std::string>& words) {
    return std::ranges::any_of(words, is_size);
}

// "Q4_K_M", "IQ4_XS", "BF16"
bool is_type(std::string_view word) {
    if (word == "BF16" || word == "F16" || word == "F32") {
        return true;
    }
    word.remove_prefix(word.starts_with("IQ") ? 1 : 0);
    return word.size() > 1 && word[0] == 'Q' && is_digit(word[1]);
}

struct FileName {
    std::string model;
    std::string type;  // empty: not in the file name
};

// "-00001-of-00003"
void drop_piece(std::string& stem) {
    constexpr std::string_view kPiece = "-00000-of-00000";
    const std::size_t begin = stem.size() - std::min(stem.size(), kPiece.size());
    const bool is_piece = std::ranges::equal(
        std::string_view(stem).substr(begin), kPiece,
        [](char letter, char form) { return form == '0' ? is_digit(letter) : letter == form; });
    if (is_piece) {
        stem.resize(begin);
    }
}

FileName parse_file_name(const std::string& file) {
    constexpr std::string_view kEnding = ".gguf";
    std::string stem = file;
    if (stem.ends_with(kEnding)) {
        stem.resize(stem.size() - kEnding.size());
    }
    drop_piece(stem);
    const std::size_t last = stem.find_last_of("-.");
    const std::string type = last == std::string::npos ? "" : upper(stem.substr(last + 1));
    return is_type(type) ? FileName{stem.substr(0, last), type} : FileName{stem, ""};
}

// "instruct" as "Instruct", "135m" as "135M", "v2" and "SmolLM2" as they are.
std::string readable_word(const std::string& word) {
    const std::string capitals = upper(word);
    if (is_size(capitals)) {
        return capitals;
    }
    const bool has_capitals = std::ranges::any_of(
        word, [](unsigned char letter) { return letter < 0x80 && std::isupper(letter) != 0; });
    const bool is_version = word.size() > 1 && word[0] == 'v' && is_digit(word[1]);
    return has_capitals || is_version ? word : capitals.substr(0, 1) + word.substr(1);
}

// A name with spaces is already meant for people: only underscores are replaced.
std::string readable(std::string name) {
    if (name.find(' ') != std::string::npos) {
        std::ranges::replace(name, '_', ' ');
        return name;
    }
    return join(title_words(name), " ", readable_word);
}

// "135M"; empty below a million parameters.
std::string size_text(std::int64_t n_parameters) {
    const auto n = static_cast<double>(n_parameters);
    if (n >= 1e9) {
        const double rounded = std::round(n / 1e8) / 10;  // 1.2, 8, 70.6
        return concat(rounded, "B");
    }
    return n >= 1e6 ? concat(std::lround(n / 1e6), "M") : "";
}

// Skips F32, the type of the norms whatever the other weights are.
std::string main_type(const std::string& types) {
    const auto all = split(types, ',');
    const auto found =
        std::ranges::find_if(all, [](std::string_view type) { return type != "F32"; });
    return std::string(found == all.end() ? all.front() : *found);
}

}  // namespace

std::string model_title(const BenchModel& model) {
    const FileName file = parse_file_name(model.file);
    const bool is_usual_form = has_size(title_words(file.model));
    std::string title = readable(is_usual_form || model.name.empty() ? file.model : model.name);
    const std::string size = has_size(title_words(title)) ? "" : size_text(model.n_parameters);
    const std::string type = file.type.empty() ? main_type(model.types) : file.type;
    for (const std::string& more : {size, type}) {
        title += more.empty() ? "" : concat(title.empty() ? "" : ", ", more);
    }
    return title;
}

}  // namespace knap
