#include "base/text_file.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace knap {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

// Errors start with `name`, such as "prompt FILE".
std::string read_all(std::FILE* file, const std::string& name) {
    std::string text;
    std::array<char, 65536> chunk;
    while (const std::size_t n_read = std::fread(chunk.data(), 1, chunk.size(), file)) {
        text.append(chunk.data(), n_read);
        if (text.size() > kMaxBytes) {
            fail(name, ": expected at most ", kMaxBytes, " bytes, found more");
        }
    }
    if (std::ferror(file) != 0) {
        fail(name, ": cannot be read: ", std::strerror(errno));
    }
    return text;
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path, std::string_view what) {
    if (path == "-") {
        return read_all(stdin, concat(what, " on standard input"));
    }
    const std::string name = concat(what, " ", path.string());
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               &std::fclose);
    if (!file) {
        fail(name, ": cannot be opened: ", std::strerror(errno));
    }
    return read_all(file.get(), name);
}

}  // namespace knap
