#include "cli/process/lost_file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cli/exit_code.h"

namespace knap {
namespace {

// Only async-signal-safe functions are called below: nothing allocates.

std::atomic<bool> is_ending{false};

void put(std::string_view text) {
    [[maybe_unused]] const auto n_written = write(STDERR_FILENO, text.data(), text.size());
}

// The path in a line of /proc/self/maps ("from-to permissions offset device inode path") if `place`
// lies between its addresses and it has one. Memory without a file has none, or a name in brackets.
std::string_view path_in(std::string_view line, std::uintptr_t place) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    const char* end = line.data() + line.size();
    const char* dash = std::from_chars(line.data(), end, from, 16).ptr;
    if (dash == end || *dash != '-') {
        return {};
    }
    std::from_chars(dash + 1, end, to, 16);
    const std::size_t path = line.find('/');
    return place < from || place >= to || path == line.npos ? std::string_view()
                                                            : line.substr(path);
}

// Reads the list of this process's mappings line by line.
class Mappings {
  public:
    Mappings() : descriptor_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
    ~Mappings() { close(descriptor_); }
    Mappings(const Mappings&) = delete;
    Mappings& operator=(const Mappings&) = delete;

    // The file that is mapped at that address; empty: none, or unknown. Valid while this lives.
    std::string_view file_at(std::uintptr_t place) {
        while (next_line()) {
            const std::string_view path = path_in(line_, place);
            if (!path.empty()) {
                return path;
            }
        }
        return {};
    }

  private:
    bool next_line() {
        n_used_ += line_.size() + (line_.empty() ? 0 : 1);
        for (;;) {
            const std::string_view rest(text_.data() + n_used_, n_read_ - n_used_);
            const std::size_t end = rest.find('\n');
            if (end != rest.npos) {
                line_ = rest.substr(0, end);
                return true;
            }
            if (!read_more()) {
                return false;
            }
        }
    }

    bool read_more() {
        std::copy(text_.begin() + n_used_, text_.begin() + n_read_, text_.begin());
        n_read_ -= n_used_;
        n_used_ = 0;
        const auto n = read(descriptor_, text_.data() + n_read_, text_.size() - n_read_);
        n_read_ += n > 0 ? static_cast<std::size_t>(n) : 0;
        return n > 0;
    }

    int descriptor_;
    std::array<char, 8192> text_;  // a path has at most 4096 bytes
    std::size_t n_read_ = 0;
    std::size_t n_used_ = 0;
    std::string_view line_;
};

void on_bus_error(int signal, siginfo_t* info, void*) {
    if (is_ending.exchange(true)) {
        for (;;) {
            pause();  // another thread has begun
        }
    }
    Mappings mappings;
    const std::string_view path = mappings.file_at(reinterpret_cast<std::uintptr_t>(info->si_addr));
    if (path.empty()) {
        ::signal(signal, SIG_DFL);  // not ours to explain: the instruction is tried again
        return;
    }
    put("knap: error: ");
    put(path);
    put(": expected the file as it was when it was opened, found a part missing: another program "
        "has changed it, or its disk has failed\n");
    _exit(kExitFailed);
}

}  // namespace

void end_when_a_file_is_lost() {
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, nullptr);
}

}  // namespace knap
