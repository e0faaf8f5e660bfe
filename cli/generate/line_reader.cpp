#include "cli/generate/line_reader.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "base/error.h"

namespace knap {
namespace {

// Waits until standard input or `wake_descriptor` is readable, and returns true for the latter.
bool is_woken(int wake_descriptor) {
    std::array<pollfd, 2> waited{{{STDIN_FILENO, POLLIN, 0}, {wake_descriptor, POLLIN, 0}}};
    while (poll(waited.data(), waited.size(), -1) < 0) {
        if (errno != EINTR) {
            fail("cannot wait for standard input: ", std::strerror(errno));
        }
    }
    return waited[1].revents != 0;
}

}  // namespace

LineReader::Outcome LineReader::read(std::string& line, int wake_descriptor) {
    std::array<char, 4096> chunk;
    auto newline = pending_.find('\n');
    while (newline == std::string::npos) {
        if (is_woken(wake_descriptor)) {
            pending_.clear();
            return Outcome::interrupted;
        }
        const auto n_read = ::read(STDIN_FILENO, chunk.data(), chunk.size());
        if (n_read < 0) {
            fail("cannot read standard input: ", std::strerror(errno));
        }
        if (n_read == 0) {
            line = std::exchange(pending_, {});
            return line.empty() ? Outcome::end : Outcome::line;
        }
        const auto n_searched = pending_.size();
        pending_.append(chunk.data(), static_cast<std::size_t>(n_read));
        newline = pending_.find('\n', n_searched);
    }
    line = pending_.substr(0, newline);
    pending_.erase(0, newline + 1);
    return Outcome::line;
}

}  // namespace knap
