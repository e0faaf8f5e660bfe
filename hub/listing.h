// The files of a repository, as the hub lists them. What the hub sends is not trusted: a path that
// could lead out of a folder, or a file without size and checksum, is not in a listing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace knap {

struct Digest {
    // Large files have the SHA-256 of their bytes, small ones git's SHA-1 of a blob.
    enum class Kind { sha256, git_sha1 };
    Kind kind = Kind::sha256;
    std::string hex{};  // lower case

    friend bool operator==(const Digest&, const Digest&) = default;
};

std::string to_text(const Digest& digest);  // "sha256:0a1b..."

struct HubFile {
    std::string path;  // in the repository: "Q4_K_M/model.gguf"
    std::uint64_t n_bytes = 0;
    Digest digest;

    friend bool operator==(const HubFile&, const HubFile&) = default;
};

struct HubListing {
    std::string commit;
    std::vector<HubFile> files;  // only GGUF files, in the order of the hub
};

// A relative path of a few plain names: no "..", nothing hidden, no control characters.
bool is_safe_path(std::string_view path);

// The commit of the branch `main`, else of the first branch, in the hub's list of branches. Throws
// knap::Error when there is none.
std::string parse_commit(std::string_view json);

// Adds the GGUF files in a page of the hub's list of files. Throws knap::Error when the text is no
// such list.
void parse_tree(std::string_view json, std::vector<HubFile>& files);

}  // namespace knap
