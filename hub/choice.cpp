#include "hub/choice.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/quoted.h"
#include "model/gguf/gguf_split.h"

namespace knap {
namespace {

using namespace std::string_view_literals;

constexpr std::array kDefaultQuants{"Q4_K_M"sv, "Q8_0"sv};
constexpr std::array kNoModels{"mmproj"sv,  "imatrix"sv, "mtp-"sv,
                               "eagle3-"sv, "dflash-"sv, "dspark-"sv};
constexpr std::size_t kMaxListed = 12;

bool is_alphanumeric(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0;
}

bool equals_ignoring_case(char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
}

// Q8_0 is in "a-q8_0.gguf" and "Q8_0/a.gguf", but F16 is not in "a-BF16.gguf".
bool has_quant(std::string_view path, std::string_view quant) {
    auto from = path.begin();
    for (;;) {
        from = std::search(from, path.end(), quant.begin(), quant.end(), equals_ignoring_case);
        if (from == path.end()) {
            return false;
        }
        const bool begins = from == path.begin() || !is_alphanumeric(*std::prev(from));
        const auto end = from + std::ssize(quant);
        if (begins && end != path.end() && (*end == '.' || *end == '-' || *end == '/')) {
            return true;
        }
        ++from;
    }
}

// Also false for the second and later parts of a split model.
bool is_model(const HubFile& file) {
    const std::string_view name = std::string_view(file.path).substr(file.path.rfind('/') + 1);
    const auto split_name = parse_split_name(file.path);
    const bool is_first = !split_name || split_name->part(1) == file.path;
    return is_first && std::ranges::none_of(kNoModels, [name](std::string_view other) {
               return name.find(other) != name.npos;
           });
}

const HubFile* first_with(const std::vector<HubFile>& files, std::string_view quant) {
    const auto found = std::ranges::find_if(files, [quant](const HubFile& file) {
        return is_model(file) && has_quant(file.path, quant);
    });
    return found != files.end() ? &*found : nullptr;
}

const HubFile* find_path(const std::vector<HubFile>& files, const std::string& path) {
    const auto found = std::ranges::find(files, path, &HubFile::path);
    return found != files.end() ? &*found : nullptr;
}

const HubFile* find_model(const std::vector<HubFile>& files, const HubReference& reference) {
    if (!reference.file.empty()) {
        return find_path(files, reference.file);
    }
    if (!reference.quant.empty()) {
        return first_with(files, reference.quant);
    }
    for (const std::string_view quant : kDefaultQuants) {
        if (const HubFile* found = first_with(files, quant)) {
            return found;
        }
    }
    const auto any = std::ranges::find_if(files, is_model);
    return any != files.end() ? &*any : nullptr;
}

std::string list_of(const std::vector<HubFile>& files) {
    const std::vector<HubFile> shown(
        files.begin(), files.begin() + std::ssize(files) -
                           std::max<std::ptrdiff_t>(0, std::ssize(files) - kMaxListed));
    const std::string list =
        join(shown, ", ", [](const HubFile& file) { return printable(file.path); });
    const std::string rest =
        files.size() > shown.size() ? concat(" and ", files.size() - shown.size(), " more") : "";
    return files.empty() ? "none" : list + rest;
}

}  // namespace

std::vector<HubFile> choose_files(const std::vector<HubFile>& files,
                                  const HubReference& reference) {
    const HubFile* model = find_model(files, reference);
    if (model == nullptr) {
        const std::string wanted = !reference.file.empty()    ? " named " + reference.file
                                   : !reference.quant.empty() ? " for :" + reference.quant
                                                              : "";
        fail(reference.repository, ": expected a GGUF file", wanted, ", found ", list_of(files));
    }
    const auto split_name = parse_split_name(model->path);
    if (!split_name) {
        return {*model};
    }
    std::vector<HubFile> parts;
    for (int number = 1; number <= split_name->count; ++number) {
        const std::string path = split_name->part(number).generic_string();
        const HubFile* part = find_path(files, path);
        if (part == nullptr) {
            fail(reference.repository, ": expected all ", split_name->count, " parts of a model, ",
                 "found no ", path);
        }
        parts.push_back(*part);
    }
    return parts;
}

}  // namespace knap
