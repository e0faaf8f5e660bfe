#include "model/gguf/gguf_split.h"

#include <charconv>
#include <cstdio>
#include <string_view>

namespace knap {
namespace {

constexpr std::string_view kPattern = "-NNNNN-of-NNNNN.gguf";  // N: a digit
constexpr std::size_t kCountAt = 10;

bool fits_pattern(std::string_view suffix) {
    for (std::size_t i = 0; i < kPattern.size(); ++i) {
        const bool is_digit = suffix[i] >= '0' && suffix[i] <= '9';
        if (kPattern[i] == 'N' ? !is_digit : suffix[i] != kPattern[i]) {
            return false;
        }
    }
    return true;
}

int five_digits(std::string_view text) {
    int value = 0;
    std::from_chars(text.data(), text.data() + 5, value);
    return value;
}

}  // namespace

std::filesystem::path SplitName::part(int part_number) const {
    char suffix[32];
    std::snprintf(suffix, sizeof(suffix), "-%05d-of-%05d.gguf", part_number, count);
    return folder / (model + suffix);
}

std::optional<SplitName> parse_split_name(const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    if (name.size() <= kPattern.size()) {
        return std::nullopt;
    }
    const std::size_t model_size = name.size() - kPattern.size();
    const std::string_view suffix = std::string_view(name).substr(model_size);
    if (!fits_pattern(suffix)) {
        return std::nullopt;
    }
    const int count = five_digits(suffix.substr(kCountAt));
    return count == 0 ? std::nullopt
                      : std::optional(SplitName{.folder = path.parent_path(),
                                                .model = name.substr(0, model_size),
                                                .count = count});
}

}  // namespace knap
