#include "hub/cache.h"

#include <algorithm>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/partial_file.h"
#include "base/text_file.h"

namespace knap {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view kRecord = ".gguf.json";
constexpr int kFormat = 1;  // of a record; those of before have no number
constexpr std::size_t kDigestInName = 16;

struct FileState {
    std::uint64_t n_bytes = 0;
    std::int64_t modified = 0;  // in the file system's own units

    friend bool operator==(const FileState&, const FileState&) = default;
};

std::optional<FileState> state_of(const fs::path& path) {
    std::error_code error;
    const std::uint64_t n_bytes = fs::file_size(path, error);
    if (error) {
        return std::nullopt;
    }
    const auto modified = fs::last_write_time(path, error);
    return error ? std::nullopt
                 : std::optional(FileState{n_bytes, modified.time_since_epoch().count()});
}

fs::path record_path(const fs::path& folder, const std::vector<HubFile>& model) {
    return folder / (model.front().path + ".json");
}

ordered_json to_json(const HubFile& file, const FileState& state) {
    return {{"path", file.path},
            {"bytes", file.n_bytes},
            {"is_large", file.digest.kind == Digest::Kind::sha256},
            {"digest", file.digest.hex},
            {"modified", state.modified}};
}

// Throws nlohmann's exceptions.
std::optional<HubFile> recorded_file(const fs::path& folder, const ordered_json& entry) {
    const HubFile file{
        .path = entry.at("path"),
        .n_bytes = entry.at("bytes"),
        .digest = {entry.at("is_large").get<bool>() ? Digest::Kind::sha256 : Digest::Kind::git_sha1,
                   entry.at("digest")}};
    const FileState recorded{file.n_bytes, entry.at("modified")};
    const bool is_unchanged = is_safe_path(file.path) && state_of(folder / file.path) == recorded;
    return is_unchanged ? std::optional(file) : std::nullopt;
}

// The files of the model; empty when one is missing or has changed, or the record is damaged or of
// another format.
std::vector<HubFile> read_record(const fs::path& folder, const fs::path& record) {
    try {
        const auto object = ordered_json::parse(read_text_file(record, "record"));
        if (object.value("format", kFormat) != kFormat) {
            return {};
        }
        std::vector<HubFile> model;
        for (const ordered_json& entry : object.at("files")) {
            auto file = recorded_file(folder, entry);
            if (!file) {
                return {};
            }
            model.push_back(std::move(*file));
        }
        return model;
    } catch (const std::exception&) {  // the model is fetched or checked again
        return {};
    }
}

}  // namespace

HubCache::HubCache(const fs::path& cache_folder, const std::string& repository)
    : folder_(cache_folder / "hub" / repository) {}

fs::path HubCache::partial_path(const HubFile& file) const {
    return folder_ / concat(file.path, ".", file.digest.hex.substr(0, kDigestInName), ".partial");
}

std::vector<HubFile> HubCache::files() const {
    std::vector<fs::path> records;
    std::error_code error;
    for (fs::recursive_directory_iterator entry(folder_, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().filename().string().ends_with(kRecord)) {
            records.push_back(entry->path());
        }
    }
    std::ranges::sort(records);
    std::vector<HubFile> files;
    for (const fs::path& record : records) {
        const std::vector<HubFile> model = read_record(folder_, record);
        files.insert(files.end(), model.begin(), model.end());
    }
    return files;
}

bool HubCache::has(const std::vector<HubFile>& model) const {
    return read_record(folder_, record_path(folder_, model)) == model;
}

void HubCache::record(const std::vector<HubFile>& model) const {
    auto files = ordered_json::array();
    for (const HubFile& file : model) {
        const auto state = state_of(path(file));
        if (!state) {
            fail(path(file).string(), ": expected the file that was just fetched, found none");
        }
        files.push_back(to_json(file, *state));
    }
    write_whole_file(record_path(folder_, model),
                     ordered_json{{"format", kFormat}, {"files", files}}.dump(1) + "\n");
}

void HubCache::remove_stale_partials(const HubFile& file) const {
    const std::string begin = path(file).filename().string() + ".";
    const fs::path current = partial_path(file);
    std::error_code error;
    for (fs::directory_iterator entry(path(file).parent_path(), error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (name.starts_with(begin) && name.ends_with(".partial") && entry->path() != current) {
            std::error_code ignored;
            fs::remove(entry->path(), ignored);
        }
    }
}

}  // namespace knap
