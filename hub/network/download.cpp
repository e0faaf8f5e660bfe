#include "hub/network/download.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/quoted.h"
#include "base/resumable_file.h"
#include "hub/network/digester.h"

namespace knap {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr const char* kChecking = "checking";

std::optional<std::uint64_t> to_number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc() && rest == text.data() + text.size();
    return is_whole && !text.empty() ? std::optional(value) : std::nullopt;
}

// "bytes 100-999/1000": a server that sends another range, or knows another size, has another file.
bool fits_range(const std::string& range, std::uint64_t first, std::uint64_t n_bytes) {
    const std::string begin = concat("bytes ", first, "-");
    const std::size_t slash = range.rfind('/');
    return range.starts_with(begin) && slash != range.npos &&
           (range.substr(slash + 1) == "*" || to_number(range.substr(slash + 1)) == n_bytes);
}

// The bytes of the file so far, in the partial file and in the digester.
class Contents {
  public:
    explicit Contents(const Download& download)
        : download_(download),
          partial_(download.path, download.partial_path),
          digester_(download.file.digest.kind, download.file.n_bytes) {
        if (partial_.size() > download.file.n_bytes) {
            partial_.restart();
        }
        n_kept_ = partial_.size();
        digester_.add_file(partial_.partial_path(),
                           [&](std::uint64_t n_done) { download_.on_progress(n_done, kChecking); });
    }

    std::uint64_t size() const { return partial_.size(); }
    bool is_whole() const { return size() == download_.file.n_bytes; }
    bool is_partly_old() const { return n_kept_ > 0; }

    void restart() {
        partial_.restart();
        digester_ = Digester(download_.file.digest.kind, download_.file.n_bytes);
        n_kept_ = 0;
    }

    void append(std::span<const std::byte> bytes) {
        if (bytes.size() > download_.file.n_bytes - size()) {
            partial_.discard();
            fail(download_.file.path, ": expected ", download_.file.n_bytes,
                 " bytes, found more in ", download_.request.url);
        }
        check_magic(bytes);
        partial_.append(bytes);
        digester_.add(bytes);
    }

    // Returns false when the bytes are not those announced. They are gone then.
    bool publish(Digest& found) {
        found = digester_.finish();
        if (found != download_.file.digest) {
            partial_.discard();
            return false;
        }
        partial_.publish();
        return true;
    }

  private:
    // At once, not after gigabytes: a wrong address has a page in place of the model.
    void check_magic(std::span<const std::byte> bytes) {
        const std::size_t at = std::min<std::size_t>(size(), kMagic.size());
        const std::size_t n_left = std::min(bytes.size(), kMagic.size() - at);
        const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        if (text.substr(0, n_left) != kMagic.substr(at, n_left)) {
            partial_.discard();
            fail(download_.file.path, ": expected a GGUF file, found ",
                 in_quotes(text.substr(0, 16)), " in ", download_.request.url);
        }
    }

    const Download& download_;
    ResumableFile partial_;
    Digester digester_;
    std::uint64_t n_kept_ = 0;
};

// Before the first byte of a response: its range and length must be those of the file.
void check_head(const Download& download, Contents& contents, const WebResponse& head) {
    const std::uint64_t n_bytes = download.file.n_bytes;
    if (head.status == 206) {
        const std::string range = head.header("content-range");
        if (!fits_range(range, contents.size(), n_bytes)) {
            fail(download.file.path, ": expected the bytes from ", contents.size(), " on of ",
                 n_bytes, ", found ", in_quotes(range), " in ", download.request.url);
        }
        return;
    }
    const std::string length = head.header("content-length");
    if (!length.empty() && to_number(length) != n_bytes) {
        fail(download.file.path, ": expected ", n_bytes, " bytes, found ", printable(length),
             " in ", download.request.url);
    }
    if (contents.size() > 0) {  // the server cannot continue a file
        contents.restart();
    }
}

// One request.
void receive(const Download& download, Contents& contents, WebResponse& response) {
    WebRequest request = download.request;
    request.first_byte = contents.size();
    bool has_begun = false;
    response =
        download.web.get(request, [&](const WebResponse& head, std::span<const std::byte> bytes) {
            if (!has_begun) {
                check_head(download, contents, head);
                has_begun = true;
            }
            contents.append(bytes);
            download.on_progress(contents.size(), "");
        });
    if (response.is_whole() && !contents.is_whole()) {
        response.failure =
            concat("expected ", download.file.n_bytes, " bytes, found ", contents.size());
        response.may_recover = true;
    }
    if (response.status == 416 && contents.size() > 0) {  // what is there is not of this file
        contents.restart();
        response.may_recover = true;
    }
}

void receive_all(const Download& download, Contents& contents) {
    Attempts attempts(download.n_attempts, [&](const std::string& note) {
        download.on_progress(contents.size(), note);
    });
    std::uint64_t n_most = contents.size();
    while (!contents.is_whole()) {
        WebResponse response;
        receive(download, contents, response);
        if (contents.size() > n_most) {
            n_most = contents.size();
            attempts.made_progress();
        }
        if (!contents.is_whole() && !attempts.may_retry(response)) {
            download.fail_response(response);
        }
    }
}

bool has_right_contents(const Download& download) {
    std::error_code error;
    if (std::filesystem::file_size(download.path, error) != download.file.n_bytes || error) {
        return false;
    }
    Digester digester(download.file.digest.kind, download.file.n_bytes);
    digester.add_file(download.path,
                      [&](std::uint64_t n_done) { download.on_progress(n_done, kChecking); });
    return digester.finish() == download.file.digest;
}

}  // namespace

void run_download(const Download& download) {
    if (has_right_contents(download)) {
        return;
    }
    for (;;) {
        Contents contents(download);
        receive_all(download, contents);
        Digest found;
        const bool is_partly_old = contents.is_partly_old();
        if (contents.publish(found)) {
            return;
        }
        if (!is_partly_old) {
            fail(download.file.path, ": expected ", to_text(download.file.digest), ", found ",
                 to_text(found), " in what came from ", download.request.url, "; it was deleted");
        }
        // The bytes of the earlier run may be the bad ones: once more from the beginning.
    }
}

}  // namespace knap
