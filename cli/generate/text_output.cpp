#include "cli/generate/text_output.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace knap {
namespace {

// The codes before and after a piece of text. Each piece resets the colour, so that the terminal is
// in order whenever the program ends.
struct EscapeCodes {
    std::string_view begin;
    std::string_view end;
};

EscapeCodes codes_of(TextColor color) {
    switch (color) {
        case TextColor::green:
            return {"\033[32m", "\033[0m"};
        case TextColor::yellow:
            return {"\033[33m", "\033[0m"};
        case TextColor::grey:
            return {"\033[2m", "\033[0m"};
        case TextColor::usual:
            break;
    }
    return {};
}

}  // namespace

void TextOutput::write(std::string_view text) {
    if (text.empty()) {
        return;
    }
    last_ = text.back();
    const EscapeCodes codes = codes_of(color_);
    write_bytes(concat(codes.begin, text, codes.end));
}

void TextOutput::write_bytes(std::string_view bytes) {
    while (!bytes.empty() && !is_closed_) {
        const auto n_written = ::write(descriptor_, bytes.data(), bytes.size());
        if (n_written >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(n_written));
        } else if (errno == EPIPE) {
            is_closed_ = true;
        } else if (errno != EINTR) {
            fail("cannot write to standard ", descriptor_ == STDERR_FILENO ? "error" : "output",
                 ": ", std::strerror(errno));
        }
    }
}

void TextOutput::end_line() {
    color_ = TextColor::usual;
    if (last_ != '\n') {
        write("\n");
    }
}

}  // namespace knap
