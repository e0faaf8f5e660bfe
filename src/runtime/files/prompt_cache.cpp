#include "runtime/files/prompt_cache.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/hash.h"
#include "base/partial_file.h"
#include "kv/sequence.h"

namespace knap {
namespace {

constexpr std::string_view kKind = "knapkv";
constexpr std::string_view kVersion = "02";

// The first bytes of a file: its kind and its version.
constexpr std::size_t kMagicBytes = kKind.size() + kVersion.size();

struct Header {
    char magic[kMagicBytes];
    std::uint64_t model;
    std::uint64_t types;  // of keys and values, and how their numbers are made
    std::uint64_t n_layers;
    std::uint64_t row_bytes;
    std::uint64_t n_tokens;

    std::uint64_t token_bytes() const { return n_tokens * sizeof(Token); }
    std::uint64_t layer_bytes() const { return n_tokens * row_bytes; }
    std::uint64_t file_bytes() const {
        return sizeof(Header) + token_bytes() + n_layers * layer_bytes() + sizeof(std::uint64_t);
    }
};

Header make_header(std::uint64_t model, int n_layers, std::size_t n_tokens, const Sequence& cache) {
    Header header{.magic = {},
                  .model = model,
                  .types = cache.memory().stores().front()->saved_format(),
                  .n_layers = static_cast<std::uint64_t>(n_layers),
                  .row_bytes = cache.memory().saved_row_bytes(),
                  .n_tokens = n_tokens};
    std::ranges::copy(concat(kKind, kVersion), header.magic);
    return header;
}

// A file written front to back, with the checksum of all of it at the end.
class ChecksummedWriter {
  public:
    ChecksummedWriter(const std::filesystem::path& path, std::uint64_t n_bytes)
        : file_(path, n_bytes) {}

    void write(std::span<const std::byte> bytes) {
        file_.write_at(offset_, bytes);
        offset_ += bytes.size();
        hash_.add(bytes);
    }
    void finish() {
        const std::uint64_t checksum = hash_.value();
        write(std::as_bytes(std::span(&checksum, 1)));
        file_.publish();
    }

  private:
    PartialFile file_;
    std::uint64_t offset_ = 0;
    Fnv1a hash_;
};

bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

void check_kind(const std::filesystem::path& path, std::string_view bytes) {
    if (!bytes.starts_with(kKind) || bytes.size() < kMagicBytes) {
        fail(path.string(), ": expected a prompt cache of knap, found another kind of file");
    }
    const std::string_view version = bytes.substr(kKind.size(), kVersion.size());
    if (version != kVersion && std::ranges::all_of(version, is_digit)) {
        fail(path.string(), ": expected a prompt cache of version ", kVersion,
             ", found one of version ", version, " (delete it to make it anew)");
    }
    if (version != kVersion || bytes.size() < sizeof(Header) + sizeof(std::uint64_t)) {
        fail(path.string(), ": expected a prompt cache of knap, found another kind of file");
    }
}

// The header of a file whose size and checksum are right.
Header read_header(const std::filesystem::path& path, std::span<const std::byte> bytes) {
    check_kind(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    std::uint64_t checksum;
    std::memcpy(&checksum, bytes.data() + bytes.size() - sizeof checksum, sizeof checksum);
    Fnv1a hash;
    hash.add(bytes.first(bytes.size() - sizeof checksum));
    if (hash.value() != checksum) {
        fail(path.string(),
             ": expected a whole prompt cache, found a damaged or partial one (delete it to make "
             "it anew)");
    }
    return header;
}

void check_header(const std::filesystem::path& path,
                  const Header& found,
                  const Header& expected,
                  int n_ctx,
                  std::size_t n_bytes) {
    if (found.model != expected.model || found.n_layers != expected.n_layers) {
        fail(path.string(), ": expected a prompt cache of this model, found one of another model");
    }
    if (found.types != expected.types || found.row_bytes != expected.row_bytes) {
        fail(
            path.string(),
            ": expected a prompt cache with this `.cache_type_k` and `.cache_type_v` (and for q8_0 "
            "with this "
            "`.flash_attention` and `.kernels`), found one with others");
    }
    if (found.n_tokens > static_cast<std::uint64_t>(n_ctx)) {
        fail(path.string(), ": expected at most ", n_ctx, " tokens (`.n_ctx`), found ",
             found.n_tokens);
    }
    if (found.file_bytes() != n_bytes) {
        fail(path.string(), ": expected ", found.file_bytes(), " bytes, found ", n_bytes);
    }
}

}  // namespace

void write_prompt_cache(const std::filesystem::path& path,
                        std::uint64_t model_fingerprint,
                        int n_layers,
                        std::span<const Token> tokens,
                        const Sequence& cache) {
    const Header header = make_header(model_fingerprint, n_layers, tokens.size(), cache);
    ChecksummedWriter file(path, header.file_bytes());
    file.write(std::as_bytes(std::span(&header, 1)));
    file.write(std::as_bytes(tokens));
    std::vector<std::byte> rows(header.layer_bytes());
    for (int layer = 0; layer < n_layers; ++layer) {
        cache.read_rows(layer, static_cast<int>(tokens.size()), rows.data());
        file.write(rows);
    }
    file.finish();
}

PromptCacheFile::PromptCacheFile(const std::filesystem::path& path,
                                 std::uint64_t model_fingerprint,
                                 int n_layers,
                                 int n_ctx,
                                 const Sequence& cache)
    : file_(path), n_layers_(n_layers) {
    const Header header = read_header(path, file_.bytes());
    check_header(path, header, make_header(model_fingerprint, n_layers, 0, cache), n_ctx,
                 file_.bytes().size());
    tokens_.resize(header.n_tokens);
    // There may be none, and then no memory for them.
    std::ranges::copy(file_.bytes().subspan(sizeof(Header), header.token_bytes()),
                      std::as_writable_bytes(std::span(tokens_)).begin());
}

void PromptCacheFile::read_rows(Sequence& cache) const {
    const int n_rows = static_cast<int>(tokens_.size());
    KNAP_ASSERT(cache.committed() == 0 && cache.is_reserved(n_rows), "an empty sequence");
    const std::byte* next = file_.bytes().data() + sizeof(Header) + tokens_.size() * sizeof(Token);
    for (int layer = 0; layer < n_layers_; ++layer) {
        cache.write_rows(layer, n_rows, next);
        next += tokens_.size() * cache.saved_row_bytes();
    }
    cache.commit(n_rows);
}

}  // namespace knap
