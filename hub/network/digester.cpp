#include "hub/network/digester.h"

#include <array>
#include <fstream>
#include <vector>

#include <openssl/evp.h>

#include "base/error.h"

namespace knap {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;

struct FreeContext {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::string to_hex(std::span<const unsigned char> bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string hex;
    for (const unsigned char byte : bytes) {
        hex += kDigits[byte >> 4];
        hex += kDigits[byte & 15];
    }
    return hex;
}

}  // namespace

struct Digester::Impl {
    Digest::Kind kind;
    std::unique_ptr<EVP_MD_CTX, FreeContext> context{EVP_MD_CTX_new()};
};

Digester::Digester(Digest::Kind kind, std::uint64_t n_bytes) : impl_(new Impl{kind}) {
    const bool is_git = kind == Digest::Kind::git_sha1;
    if (EVP_DigestInit_ex(impl_->context.get(), is_git ? EVP_sha1() : EVP_sha256(), nullptr) != 1) {
        fail("OpenSSL: expected ", is_git ? "SHA-1" : "SHA-256", ", found it disabled");
    }
    if (is_git) {  // git hashes a header with the bytes of a file
        const std::string header = concat("blob ", n_bytes, '\0');
        add(std::as_bytes(std::span(header)));
    }
}

Digester::~Digester() = default;
Digester::Digester(Digester&&) noexcept = default;
Digester& Digester::operator=(Digester&&) noexcept = default;

void Digester::add(std::span<const std::byte> bytes) {
    EVP_DigestUpdate(impl_->context.get(), bytes.data(), bytes.size());
}

void Digester::add_file(const std::filesystem::path& path,
                        const std::function<void(std::uint64_t)>& on_progress) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> chunk(kChunk);
    std::uint64_t n_done = 0;
    while (file) {
        file.read(chunk.data(), std::ssize(chunk));
        const auto n_read = static_cast<std::size_t>(file.gcount());
        add(std::as_bytes(std::span(chunk.data(), n_read)));
        n_done += n_read;
        on_progress(n_done);
    }
    if (!file.eof()) {
        fail(path.string(), ": cannot be read");
    }
}

Digest Digester::finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned int n_bytes = 0;
    EVP_DigestFinal_ex(impl_->context.get(), bytes.data(), &n_bytes);
    return {impl_->kind, to_hex(std::span(bytes).first(n_bytes))};
}

}  // namespace knap
