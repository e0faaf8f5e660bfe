#include "device/worker_address.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/quoted.h"

namespace knap {
namespace {

constexpr int kConnectMs = 5000;

class Socket {
  public:
    explicit Socket(int flags) : number_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)) {
        if (number_ < 0) {
            fail("socket: ", std::strerror(errno));
        }
    }
    ~Socket() { ::close(number_); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    int number() const { return number_; }

  private:
    int number_;
};

void set_option(int socket, int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
}

const sockaddr* as_general(const sockaddr_in& address) {
    return reinterpret_cast<const sockaddr*>(&address);
}

// The first of the host's addresses, as ggml takes it; none: no such host.
std::optional<sockaddr_in> resolve(const WorkerAddress& address) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(address.host.c_str(), nullptr, &hints, &found) != 0) {
        return std::nullopt;
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
    sockaddr_in resolved{};
    std::memcpy(&resolved, found->ai_addr, sizeof resolved);
    resolved.sin_port = htons(static_cast<std::uint16_t>(address.port));
    return resolved;
}

// 0, or the error that connecting ended with.
int try_to_connect(const sockaddr_in& address) {
    const Socket socket(SOCK_NONBLOCK);
    if (connect(socket.number(), as_general(address), sizeof address) == 0) {
        return 0;
    }
    if (errno != EINPROGRESS) {
        return errno;
    }
    pollfd polled{.fd = socket.number(), .events = POLLOUT, .revents = 0};
    if (poll(&polled, 1, kConnectMs) == 0) {
        return ETIMEDOUT;
    }
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

[[noreturn]] void fail_to_reach(const WorkerAddress& address, const char* why) {
    fail("worker ", address.text(), ": expected a knap worker, found none (", why, ")");
}

}  // namespace

std::string WorkerAddress::text() const {
    return concat(host, ":", port);
}

WorkerAddress parse_worker_address(const std::string& text) {
    constexpr int kMaxPort = 65535;
    const auto colon = text.rfind(':');
    const char* end = text.data() + text.size();
    WorkerAddress address{.host = text.substr(0, colon)};
    bool is_read = false;
    if (colon != std::string::npos && colon > 0) {
        const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, address.port);
        is_read = error == std::errc() && rest == end && address.port >= 1 &&
                  address.port <= kMaxPort && address.host.find(':') == std::string::npos;
    }
    if (!is_read) {
        fail("`.workers`: expected host:port, found ", in_quotes(text));
    }
    return address;
}

void check_reachable(const WorkerAddress& address) {
    const std::optional<sockaddr_in> resolved = resolve(address);
    if (!resolved) {
        fail_to_reach(address, "no such host");
    }
    if (const int error = try_to_connect(*resolved)) {
        fail_to_reach(address, std::strerror(error));
    }
}

void check_can_listen(const WorkerAddress& address) {
    sockaddr_in local{};
    local.sin_family = AF_INET;
    local.sin_port = htons(static_cast<std::uint16_t>(address.port));
    if (inet_pton(AF_INET, address.host.c_str(), &local.sin_addr) != 1) {
        fail("`.host`: expected an address of this machine in numbers, such as 127.0.0.1, found ",
             in_quotes(address.host));
    }
    const Socket socket(0);
    set_option(socket.number(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(socket.number(), as_general(local), sizeof local) != 0 ||
        listen(socket.number(), 1) != 0) {
        fail("worker ", address.text(), ": expected an address and a port that are free here (",
             std::strerror(errno), ")");
    }
}

void limit_silence(const WorkerAddress& address) {
    constexpr int kSeconds = 5;  // of silence before the first question, and between questions
    constexpr int kQuestions = 3;
    // For what was sent and not taken: a worker that computes does not read.
    constexpr int kPatienceMs = 30000;
    const std::optional<sockaddr_in> worker = resolve(address);
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
        const int descriptor = std::atoi(entry.path().filename().c_str());
        sockaddr_in peer{};
        socklen_t size = sizeof peer;
        if (!worker || getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0 ||
            peer.sin_family != AF_INET || peer.sin_port != worker->sin_port ||
            peer.sin_addr.s_addr != worker->sin_addr.s_addr) {
            continue;
        }
        set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
        set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, kSeconds);
        set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, kSeconds);
        set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, kQuestions);
        set_option(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, kPatienceMs);
    }
}

}  // namespace knap
