#include "support/http_client.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace knap::test {

namespace {

constexpr int kPatience_ms = 10'000;  // a test that waits longer fails

std::string to_lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

}  // namespace

HttpClient::HttpClient(int port, const std::string& host, int receive_bytes) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
        throw std::runtime_error("unknown host " + host);
    }
    socket_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_bytes > 0) {
        setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    }
    const int result = connect(socket_, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    if (result != 0) {
        close(std::exchange(socket_, -1));
        throw std::runtime_error("nobody listens on port " + std::to_string(port));
    }
}

HttpClient::~HttpClient() {
    if (socket_ >= 0) {
        close(socket_);
    }
}

bool HttpClient::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

void HttpClient::finish_sending() {
    shutdown(socket_, SHUT_WR);
}

void HttpClient::reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(std::exchange(socket_, -1));
}

bool HttpClient::receive() {
    pollfd request{.fd = socket_, .events = POLLIN, .revents = 0};
    std::array<char, 65536> buffer;
    if (poll(&request, 1, kPatience_ms) <= 0) {
        return false;
    }
    const ssize_t n = recv(socket_, buffer.data(), buffer.size(), 0);
    was_reset_ = n < 0;
    if (n <= 0) {
        return false;
    }
    received_.append(buffer.data(), static_cast<std::size_t>(n));
    return true;
}

bool HttpClient::read_until(std::string_view text) {
    std::size_t found;
    while ((found = received_.find(text)) == std::string::npos) {
        if (!receive()) {
            return false;
        }
    }
    take(found + text.size());
    return true;
}

std::string HttpClient::take(std::size_t n_bytes) {
    std::string taken = received_.substr(0, n_bytes);
    received_.erase(0, n_bytes);
    return taken;
}

std::string HttpClient::read_all() {
    while (receive()) {
    }
    return std::exchange(received_, {});
}

bool HttpClient::is_closed_within(std::chrono::milliseconds time) {
    pollfd request{.fd = socket_, .events = POLLIN, .revents = 0};
    char byte;
    return received_.empty() && poll(&request, 1, static_cast<int>(time.count())) > 0 &&
           recv(socket_, &byte, 1, MSG_PEEK) <= 0;
}

HttpAnswer HttpClient::read_head() {
    HttpAnswer answer;
    std::size_t end;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
        if (!receive()) {
            return answer;
        }
    }
    const std::string head = take(end + 4);
    answer.status = std::stoi(head.substr(9, 3));
    std::size_t line = head.find("\r\n") + 2;
    while (line < end + 2) {
        const std::size_t line_end = head.find("\r\n", line);
        const std::string text = head.substr(line, line_end - line);
        const std::size_t colon = text.find(": ");
        answer.headers[to_lower(text.substr(0, colon))] = text.substr(colon + 2);
        line = line_end + 2;
    }
    return answer;
}

HttpAnswer HttpClient::read_answer(bool has_body) {
    HttpAnswer answer = read_head();
    if (answer.status == 0) {
        return answer;
    }
    if (!has_body || answer.status == 204 || answer.status == 100) {
        answer.is_complete = true;
    } else if (answer.headers.contains("transfer-encoding")) {
        read_chunks(answer);
    } else if (answer.headers.contains("content-length")) {
        const std::size_t n_bytes = std::stoul(answer.headers["content-length"]);
        while (received_.size() < n_bytes && receive()) {
        }
        answer.is_complete = received_.size() >= n_bytes;
        answer.body = take(n_bytes);
    } else {
        answer.body = read_all();
        answer.is_complete = true;
    }
    return answer;
}

void HttpClient::read_chunks(HttpAnswer& answer) {
    for (;;) {
        std::size_t line_end;
        while ((line_end = received_.find("\r\n")) == std::string::npos) {
            if (!receive()) {
                return;
            }
        }
        const std::size_t n_bytes = std::stoul(received_, nullptr, 16);
        while (received_.size() < line_end + 2 + n_bytes + 2) {
            if (!receive()) {
                return;
            }
        }
        take(line_end + 2);
        answer.body += take(n_bytes);
        take(2);
        if (n_bytes == 0) {
            answer.is_complete = true;
            return;
        }
    }
}

HttpAnswer HttpClient::get(std::string_view path) {
    send("GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return read_answer();
}

HttpAnswer HttpClient::post(std::string_view path, std::string_view body) {
    send("POST " + std::string(path) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
    return read_answer();
}

}  // namespace knap::test
