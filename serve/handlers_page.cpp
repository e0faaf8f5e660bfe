#include <algorithm>
#include <cstdint>

#include "serve/api/error.h"
#include "serve/handlers.h"
#include "serve/page_files.h"

namespace knap {
namespace {

// The page runs its own scripts, speaks to its own server, and cannot be framed by another.
constexpr const char* kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string_view content_type_of(std::string_view name) {
    if (name.ends_with(".js")) {
        return "text/javascript; charset=utf-8";
    }
    return name.ends_with(".css") ? "text/css; charset=utf-8" : "text/html; charset=utf-8";
}

// "/" is the page and "/page/NAME" any other of its files. Names are compared with those that are
// there, so that no path leads anywhere else.
const EmbeddedFile& file_at(std::string_view path) {
    constexpr std::string_view kFolder = "/page/";
    constexpr std::string_view kIndex = "index.html";
    const bool is_index = path == "/";
    const std::string_view name = is_index ? kIndex : path.substr(kFolder.size());
    const auto file = std::ranges::find(page_files(), name, &EmbeddedFile::name);
    if (file == page_files().end() || (name == kIndex && !is_index)) {
        throw RequestError(plain_error(404, "no such file of the page"));
    }
    return *file;
}

// Another tag for every content, the same in every server: its FNV-1a hash, in quotes.
std::string etag_of(const EmbeddedFile& file) {
    std::uint64_t hash = 0xcbf29ce484222325ull;
    for (const char byte : file.content) {
        hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ull;
    }
    return concat('"', hash, '"');
}

// `If-None-Match` is a list of tags, each perhaps weak, or "*".
bool has_tag(std::string_view list, std::string_view tag) {
    return list == "*" || list.find(tag) != list.npos;
}

}  // namespace

void answer_page(Service&, const std::shared_ptr<Exchange>& exchange) {
    const HttpRequest& request = exchange->request();
    const EmbeddedFile& file = file_at(request.path);
    const std::string etag = etag_of(file);
    HttpResponse response{.content_type = std::string(content_type_of(file.name)),
                          .headers = {{"ETag", etag},
                                      {"Cache-Control", "no-cache"},
                                      {"Content-Security-Policy", kContentSecurityPolicy},
                                      {"X-Content-Type-Options", "nosniff"},
                                      {"Referrer-Policy", "no-referrer"}}};
    if (has_tag(request.header("if-none-match"), etag)) {
        response.status = 304;
        response.content_type.clear();
    } else {
        response.body = file.content;
    }
    exchange->respond(std::move(response));
}

}  // namespace knap
