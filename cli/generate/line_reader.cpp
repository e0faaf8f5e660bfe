#include "cli/generate/line_reader.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>

#include "base/error.h"

namespace knap {
namespace {

// A line is awaited from `descriptor`, or a signal from `wake_descriptor`.
struct Awaited {
    int descriptor;
    int wake_descriptor;

    enum class Event { none, input, wake };
    // Waits until something comes, or not at all. The signal goes first.
    Event next(bool waits) const {
        std::array<pollfd, 2> polled{{{descriptor, POLLIN, 0}, {wake_descriptor, POLLIN, 0}}};
        while (poll(polled.data(), polled.size(), waits ? -1 : 0) < 0) {
            if (errno != EINTR) {
                fail("cannot wait for standard input: ", std::strerror(errno));
            }
        }
        const Event of_input = polled[0].revents != 0 ? Event::input : Event::none;
        return polled[1].revents != 0 ? Event::wake : of_input;
    }
};

}  // namespace

LineReader::Outcome LineReader::read(std::string& line, int wake_descriptor, const IdleWork& work) {
    const Awaited awaited{descriptor_, wake_descriptor};
    const auto is_over = [&awaited] { return awaited.next(false) != Awaited::Event::none; };
    bool has_work = work != nullptr;
    std::array<char, 4096> chunk;
    auto newline = pending_.find('\n');
    while (newline == std::string::npos) {
        while (has_work && !is_over()) {
            has_work = work(is_over);
        }
        if (awaited.next(true) == Awaited::Event::wake) {
            pending_.clear();
            return Outcome::interrupted;
        }
        const auto n_read = ::read(descriptor_, chunk.data(), chunk.size());
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
