#include "text_output.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "base/error.h"

namespace knap {

void TextOutput::write(std::string_view text) {
    if (!text.empty()) {
        last_ = text.back();
    }
    while (!text.empty() && !is_closed_) {
        const auto n_written = ::write(STDOUT_FILENO, text.data(), text.size());
        if (n_written >= 0) {
            text.remove_prefix(static_cast<std::size_t>(n_written));
        } else if (errno == EPIPE) {
            is_closed_ = true;
        } else if (errno != EINTR) {
            fail("cannot write to standard output: ", std::strerror(errno));
        }
    }
}

void TextOutput::end_line() {
    if (last_ != '\n') {
        write("\n");
    }
}

}  // namespace knap
