#include "hub/listing.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/quoted.h"

namespace knap {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxName = 180;  // a file system takes 255 bytes, of which suffixes need some
constexpr std::size_t kMaxDepth = 8;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 48;
constexpr std::size_t kCommitSize = 40;

bool is_hex(std::string_view text, std::size_t size) {
    return text.size() == size && text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool is_safe_name(std::string_view name) {
    return !name.empty() && name.size() <= kMaxName && name.front() != '.' &&
           std::ranges::none_of(
               name, [](unsigned char c) { return c < ' ' || c == 0x7f || c == '\\' || c == ':'; });
}

// The text of a field, or an empty one.
std::string text_of(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<Digest> digest_of(const json& entry) {
    const auto large = entry.find("lfs");
    const bool is_large = large != entry.end() && large->is_object();
    Digest digest{is_large ? Digest::Kind::sha256 : Digest::Kind::git_sha1,
                  text_of(is_large ? *large : entry, "oid")};
    return is_hex(digest.hex, is_large ? 64 : 40) ? std::optional(digest) : std::nullopt;
}

std::optional<HubFile> file_of(const json& entry) {
    if (!entry.is_object() || text_of(entry, "type") != "file") {
        return std::nullopt;
    }
    HubFile file{.path = text_of(entry, "path")};
    const auto size = entry.find("size");
    const auto digest = digest_of(entry);
    if (!file.path.ends_with(".gguf") || !is_safe_path(file.path) || size == entry.end() ||
        !size->is_number_unsigned() || !digest) {
        return std::nullopt;
    }
    file.n_bytes = size->get<std::uint64_t>();
    file.digest = *digest;
    return file.n_bytes <= kMaxBytes ? std::optional(file) : std::nullopt;
}

}  // namespace

std::string to_text(const Digest& digest) {
    return concat(digest.kind == Digest::Kind::sha256 ? "sha256:" : "git-sha1:", digest.hex);
}

bool is_safe_path(std::string_view path) {
    const auto names = split(path, '/');
    return names.size() <= kMaxDepth && std::ranges::all_of(names, is_safe_name);
}

std::string parse_commit(std::string_view text) {
    const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
    const auto branches = object.is_object() ? object.find("branches") : object.end();
    if (!object.is_object() || branches == object.end() || !branches->is_array()) {
        fail("expected a JSON object with a list of branches, found ", in_quotes(text));
    }
    std::string first;
    for (const json& branch : *branches) {
        if (!branch.is_object() || !is_hex(text_of(branch, "targetCommit"), kCommitSize)) {
            continue;
        }
        if (text_of(branch, "name") == "main") {
            return text_of(branch, "targetCommit");
        }
        first = first.empty() ? text_of(branch, "targetCommit") : first;
    }
    if (first.empty()) {
        fail("expected a branch with a commit, found ", in_quotes(text));
    }
    return first;
}

void parse_tree(std::string_view text, std::vector<HubFile>& files) {
    const json entries = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!entries.is_array()) {
        fail("expected a JSON list of files, found ", in_quotes(text));
    }
    for (const json& entry : entries) {
        if (auto file = file_of(entry)) {
            files.push_back(std::move(*file));
        }
    }
}

}  // namespace knap
