#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/quoted.h"
#include "hub/connection.h"
#include "hub/network/attempts.h"
#include "hub/network/download.h"
#include "hub/network/web_client.h"

namespace knap {
namespace {

constexpr std::size_t kMaxListing = std::size_t{16} << 20;
constexpr int kMaxPages = 64;
constexpr int kDownloadAttempts = 5;
constexpr std::array<std::string_view, 3> kOwnMachine{"localhost", "127.0.0.1", "[::1]"};

bool has_only_visible_letters(std::string_view text) {
    return std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

std::string checked_endpoint(std::string_view text) {
    while (text.ends_with('/')) {
        text.remove_suffix(1);
    }
    const bool is_http = text.starts_with("https://") || text.starts_with("http://");
    if (!is_http || !has_only_visible_letters(text) || text.ends_with(':') ||
        text.find_first_of("?#@\"\\") != text.npos) {
        fail("endpoint of the hub ($HF_ENDPOINT): expected https://HOST or http://HOST, found ",
             in_quotes(text));
    }
    return std::string(text);
}

std::string_view host_of(std::string_view endpoint) {
    const std::string_view rest = endpoint.substr(endpoint.find("//") + 2);
    const std::size_t end_of_ipv6 = rest.starts_with('[') ? rest.find(']') : 0;
    return rest.substr(0, rest.find_first_of(":/", end_of_ipv6));
}

// A token is sent encrypted, or not beyond this machine.
std::string checked_token(const std::string& token, std::string_view endpoint) {
    if (!has_only_visible_letters(token)) {
        fail("`.token`: expected a token of the hub, found letters that no token has");
    }
    const bool is_safe = endpoint.starts_with("https://") ||
                         std::ranges::find(kOwnMachine, host_of(endpoint)) != kOwnMachine.end();
    if (!is_safe && !token.empty()) {
        log_warning("the token is not sent to ", endpoint, ", because it is not https");
    }
    return is_safe ? token : "";
}

// Bytes other than letters, digits and a few marks as %XX.
std::string escaped(std::string_view path) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    constexpr std::string_view kPlain = "-._~/";
    std::string out;
    for (const unsigned char c : path) {
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || kPlain.find(char(c)) != kPlain.npos;
        if (is_plain) {
            out += char(c);
        } else {
            out += {'%', kDigits[c >> 4], kDigits[c & 15]};
        }
    }
    return out;
}

// The part "cursor=..." of the address of the next page; empty: this one is the last. The rest of
// that address is not used: it may name another host.
std::string next_cursor(const WebResponse& response) {
    const std::string link = response.header("link");
    const std::size_t end = link.find('>');
    const std::size_t begin = link.find("cursor=");
    if (link.find("rel=\"next\"") == link.npos || begin == link.npos || begin > end) {
        return "";
    }
    const std::string cursor = link.substr(begin, link.find_first_of("&>", begin) - begin);
    return has_only_visible_letters(cursor) ? cursor : "";
}

class Connection final : public HubConnection {
  public:
    Connection(const HubAccess& access, const HubObserver& observer)
        : endpoint_(checked_endpoint(access.endpoint)),
          token_(checked_token(access.token, endpoint_)),
          observer_(observer),
          web_({.certificates = access.certificates, .stall_s = access.stall_s, .on_wait = [this] {
                    stop_if_cancelled();
                }}) {}

    HubListing list(const std::string& repository, int n_attempts) override;
    void download(const std::string& repository,
                  const std::string& commit,
                  const HubFile& file,
                  const std::filesystem::path& path,
                  const std::filesystem::path& partial_path) override;

  private:
    struct Text {
        std::string body;
        WebResponse response;
    };

    void stop_if_cancelled() const {
        if (observer_.is_cancelled && observer_.is_cancelled()) {
            throw HubCancelled{};
        }
    }
    void progress(std::uint64_t n_done, std::uint64_t n_bytes, const std::string& note) const {
        stop_if_cancelled();
        if (observer_.on_progress) {
            observer_.on_progress(n_done, n_bytes, note);
        }
    }
    Text get_text(const std::string& repository, const std::string& path, int n_attempts);
    // Adds to a parser's error where the text came from.
    template <typename Parse>
    void read_answer(const std::string& path, const Parse& parse) const {
        try {
            parse();
        } catch (const Error& error) {
            fail(endpoint_, path, ": ", error.what());
        }
    }
    // `wanted`: what should be at `url`.
    [[noreturn]] void fail_response(const std::string& repository,
                                    const char* wanted,
                                    const std::string& url,
                                    const WebResponse& response) const;

    std::string endpoint_;
    std::string token_;
    const HubObserver& observer_;
    WebClient web_;
};

void Connection::fail_response(const std::string& repository,
                               const char* wanted,
                               const std::string& url,
                               const WebResponse& response) const {
    if (!response.failure.empty()) {
        fail(url, ": ", printable(response.failure));
    }
    const std::string own_words = response.header("x-error-message");
    const std::string said = own_words.empty() ? "" : concat(" (\"", printable(own_words), "\")");
    const int status = response.status;
    if (status == 401 || status == 403) {
        fail(repository, ": the hub refuses access, status ", status, said,
             token_.empty()
                 ? ": the repository is private or gated, or there is none; a token that "
                   "may read it goes in $HF_TOKEN or `.token`"
                 : concat(": expected a token that may read it, and for a gated one its "
                          "conditions accepted at ",
                          endpoint_, "/", repository));
    }
    if (status == 404) {
        fail(repository, ": expected ", wanted, " at ", url, ", found none", said);
    }
    if (status == 429) {
        fail(repository, ": the hub refuses more requests for now, status 429", said,
             token_.empty() ? "; with a token ($HF_TOKEN) it permits more" : "");
    }
    fail(url, ": expected a file, found status ", status, said);
}

Connection::Text Connection::get_text(const std::string& repository,
                                      const std::string& path,
                                      int n_attempts) {
    const std::string url = endpoint_ + path;
    Attempts attempts(n_attempts, [this](const std::string& note) { progress(0, 0, note); });
    for (;;) {
        Text text;
        text.response =
            web_.get({url, token_}, [&](const WebResponse&, std::span<const std::byte> bytes) {
                if (text.body.size() + bytes.size() > kMaxListing) {
                    fail(url, ": expected at most ", kMaxListing, " bytes, found more");
                }
                text.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            });
        if (text.response.is_whole()) {
            return text;
        }
        if (!attempts.may_retry(text.response)) {
            fail_response(repository, "a repository with models", url, text.response);
        }
    }
}

HubListing Connection::list(const std::string& repository, int n_attempts) {
    const std::string base = "/api/models/" + repository;
    const Text refs = get_text(repository, base + "/refs", n_attempts);
    HubListing listing;
    read_answer(base, [&] { listing.commit = parse_commit(refs.body); });
    const std::string tree = concat(base, "/tree/", listing.commit, "?recursive=true");
    std::string cursor;
    for (int n_pages = 0; n_pages < kMaxPages; ++n_pages) {
        const std::string page = cursor.empty() ? tree : concat(tree, "&", cursor);
        const Text text = get_text(repository, page, n_attempts);
        read_answer(page, [&] { parse_tree(text.body, listing.files); });
        cursor = next_cursor(text.response);
        if (cursor.empty()) {
            return listing;
        }
    }
    fail(repository, ": expected a list of files of at most ", kMaxPages, " pages, found more");
}

void Connection::download(const std::string& repository,
                          const std::string& commit,
                          const HubFile& file,
                          const std::filesystem::path& path,
                          const std::filesystem::path& partial_path) {
    const std::string url =
        concat(endpoint_, "/", repository, "/resolve/", commit, "/", escaped(file.path));
    run_download(
        {.web = web_,
         .request = {url, token_},
         .file = file,
         .path = path,
         .partial_path = partial_path,
         .n_attempts = kDownloadAttempts,
         .on_progress = [&](std::uint64_t n_done,
                            const std::string& note) { progress(n_done, file.n_bytes, note); },
         .fail_response =
             [&](const WebResponse& response) {
                 fail_response(repository, "the file that it lists", url, response);
             }});
}

}  // namespace

std::unique_ptr<HubConnection> connect_to_hub(const HubAccess& access,
                                              const HubObserver& observer) {
    return std::make_unique<Connection>(access, observer);
}

}  // namespace knap
