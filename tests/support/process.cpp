#include "support/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

namespace knap {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void throw_errno(const char* what) {
    throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

// Owns a file descriptor.
class Descriptor {
  public:
    explicit Descriptor(int number = -1) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor() { close(); }

    void close() {
        if (is_open()) {
            ::close(std::exchange(number_, -1));
        }
    }
    bool is_open() const { return number_ >= 0; }
    int number() const { return number_; }

  private:
    int number_;
};

struct Pipe {
    Descriptor read_end;
    Descriptor write_end;
};

Pipe make_pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw_errno("pipe2");
    }
    return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// The ends of a child's streams: ours, and those that become its descriptors 0, 1 and 2.
struct Streams {
    Descriptor input, output, error;
    Descriptor child_input, child_output, child_error;
};

Streams make_pipes() {
    Pipe input = make_pipe();
    Pipe output = make_pipe();
    Pipe error = make_pipe();
    return {
        .input = std::move(input.write_end),
        .output = std::move(output.read_end),
        .error = std::move(error.read_end),
        .child_input = std::move(input.read_end),
        .child_output = std::move(output.write_end),
        .child_error = std::move(error.write_end),
    };
}

Streams make_terminal() {
    Descriptor main(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!main.is_open() || grantpt(main.number()) != 0 || unlockpt(main.number()) != 0) {
        throw_errno("pseudo-terminal");
    }
    const char* name = ptsname(main.number());
    const auto open_side = [name] { return Descriptor(open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)); };
    Streams streams;
    streams.child_input = open_side();
    streams.child_output = open_side();
    streams.child_error = open_side();
    streams.input = Descriptor(fcntl(main.number(), F_DUPFD_CLOEXEC, 0));
    streams.output = std::move(main);
    return streams;
}

// Between fork and exec only async-signal-safe calls are allowed, so everything that allocates
// comes before.
pid_t start(const std::filesystem::path& program, const ProcessRequest& request, Streams& streams) {
    std::vector<std::string> words{program.string()};
    words.insert(words.end(), request.arguments.begin(), request.arguments.end());
    std::vector<std::string> settings;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const auto is_replaced = [&text](const auto& pair) {
            return text.starts_with(pair.first + "=");
        };
        if (std::ranges::none_of(request.environment, is_replaced)) {
            settings.push_back(text);
        }
    }
    for (const auto& [name, value] : request.environment) {
        settings.push_back(concat(name, "=", value));
    }
    const auto as_pointers = [](std::vector<std::string>& strings) {
        std::vector<char*> pointers;
        pointers.reserve(strings.size() + 1);
        for (std::string& string : strings) {
            pointers.push_back(string.data());
        }
        pointers.push_back(nullptr);
        return pointers;
    };
    const auto argv = as_pointers(words);
    const auto envp = as_pointers(settings);

    const pid_t child = fork();
    if (child < 0) {
        throw_errno("fork");
    }
    if (child == 0) {
        dup2(streams.child_input.number(), STDIN_FILENO);
        dup2(streams.child_output.number(), STDOUT_FILENO);
        dup2(streams.child_error.number(), STDERR_FILENO);
        execve(argv[0], argv.data(), envp.data());
        _exit(127);
    }
    streams.child_input.close();
    streams.child_output.close();
    streams.child_error.close();
    return child;
}

// Exchanges text with a running process until it has closed its streams.
class Exchange {
  public:
    Exchange(pid_t child, const ProcessRequest& request, Streams& streams)
        : child_(child), request_(request), streams_(streams) {}

    ProcessResult run();

  private:
    void write_input();
    void read_output(Descriptor& from, std::string& to);
    void send_due_signals();

    pid_t child_;
    const ProcessRequest& request_;
    Streams& streams_;
    ProcessResult result_;
    std::size_t n_input_written_ = 0;
    std::size_t n_signals_sent_ = 0;
    std::string since_signal_;  // all output since the last signal
};

ProcessResult Exchange::run() {
    const auto deadline = Clock::now() + std::chrono::seconds(request_.timeout_s);
    while (streams_.output.is_open() || streams_.error.is_open()) {
        // poll() ignores a descriptor of -1.
        const bool has_input = streams_.input.is_open() && n_input_written_ < request_.input.size();
        if (!has_input && !request_.keeps_input_open && !request_.is_on_terminal) {
            streams_.input.close();
        }
        std::array<pollfd, 3> polled{{
            {has_input ? streams_.input.number() : -1, POLLOUT, 0},
            {streams_.output.number(), POLLIN, 0},
            {streams_.error.number(), POLLIN, 0},
        }};
        poll(polled.data(), polled.size(), 20);
        if (polled[0].revents != 0) {
            write_input();
        }
        if (polled[1].revents != 0) {
            read_output(streams_.output, result_.output);
        }
        if (polled[2].revents != 0) {
            read_output(streams_.error, result_.error);
        }
        send_due_signals();
        if (!result_.has_timed_out && Clock::now() > deadline) {
            result_.has_timed_out = true;
            kill(child_, SIGKILL);
        }
    }
    return std::move(result_);
}

void Exchange::write_input() {
    const std::string& input = request_.input;
    const auto n_written = write(streams_.input.number(), input.data() + n_input_written_,
                                 input.size() - n_input_written_);
    if (n_written > 0) {
        n_input_written_ += static_cast<std::size_t>(n_written);
    } else {
        n_input_written_ = input.size();  // the process has stopped reading
    }
}

void Exchange::read_output(Descriptor& from, std::string& to) {
    std::array<char, 65536> chunk;
    std::size_t n_wanted = chunk.size();
    const bool is_limited = &from == &streams_.output && request_.closes_output_after.has_value();
    if (is_limited) {
        n_wanted = std::min(n_wanted, *request_.closes_output_after - to.size());
    }
    const auto n_read = read(from.number(), chunk.data(), n_wanted);
    if (n_read <= 0) {  // a pseudo-terminal without a process gives EIO
        from.close();
        return;
    }
    to.append(chunk.data(), static_cast<std::size_t>(n_read));
    since_signal_.append(chunk.data(), static_cast<std::size_t>(n_read));
    if (is_limited && to.size() >= *request_.closes_output_after) {
        from.close();
    }
}

void Exchange::send_due_signals() {
    while (n_signals_sent_ < request_.signals.size()) {
        const auto& due = request_.signals[n_signals_sent_];
        if (since_signal_.find(due.after) == std::string::npos) {
            return;
        }
        kill(child_, due.number);
        since_signal_.clear();
        ++n_signals_sent_;
    }
}

ProcessResult wait_for_end(pid_t child, const ProcessRequest& request, Streams& streams) {
    ProcessResult result = Exchange(child, request, streams).run();
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return result;
}

}  // namespace

ProcessResult run_process(const std::filesystem::path& program, const ProcessRequest& request) {
    signal(SIGPIPE, SIG_IGN);  // a process may end before it has read its input
    Streams streams = request.is_on_terminal ? make_terminal() : make_pipes();
    const pid_t child = start(program, request, streams);
    return wait_for_end(child, request, streams);
}

struct BackgroundProcess::Impl {
    ProcessRequest request;
    Streams streams = make_pipes();
    pid_t child = 0;  // 0: already waited for
    std::string output;
};

BackgroundProcess::BackgroundProcess(const std::filesystem::path& program,
                                     std::vector<std::string> arguments)
    : impl_(std::make_unique<Impl>()) {
    impl_->request.arguments = std::move(arguments);
    impl_->child = start(program, impl_->request, impl_->streams);
}

BackgroundProcess::~BackgroundProcess() {
    if (impl_->child != 0) {
        send(SIGKILL);
        finish();
    }
}

bool BackgroundProcess::wait_for_output() {
    constexpr int kHalfAMinuteMs = 30000;
    pollfd polled{impl_->streams.output.number(), POLLIN, 0};
    std::array<char, 4096> chunk;
    if (poll(&polled, 1, kHalfAMinuteMs) <= 0) {
        return false;
    }
    const auto n_read = std::max<ssize_t>(0, read(polled.fd, chunk.data(), chunk.size()));
    impl_->output.append(chunk.data(), static_cast<std::size_t>(n_read));
    return n_read > 0;
}

void BackgroundProcess::send(int signal) const {
    kill(impl_->child, signal);
}

ProcessResult BackgroundProcess::finish(int timeout_s) {
    impl_->request.timeout_s = timeout_s;
    ProcessResult result = wait_for_end(impl_->child, impl_->request, impl_->streams);
    result.output = impl_->output + result.output;
    impl_->child = 0;
    return result;
}

std::filesystem::path knap_binary() {
    return KNAP_BINARY;
}

ProcessResult run_knap(const ProcessRequest& request) {
    return run_process(knap_binary(), request);
}

ProcessResult run_knap(std::vector<std::string> arguments) {
    ProcessRequest request;
    request.arguments = std::move(arguments);
    return run_knap(request);
}

}  // namespace knap
