#include "serve/http/listening_sockets.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

namespace knap {

namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses addresses_of(const std::string& host, int port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (error != 0) {
        fail("cannot listen on host '", host, "': ", ::gai_strerror(error));
    }
    return {found, &::freeaddrinfo};
}

int port_of(int descriptor) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.ss_family == AF_INET6
                     ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                     : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void set_port(sockaddr& address, int port) {
    if (address.sa_family == AF_INET6) {
        reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(static_cast<uint16_t>(port));
    } else {
        reinterpret_cast<sockaddr_in&>(address).sin_port = htons(static_cast<uint16_t>(port));
    }
}

// The same address may be listed twice.
bool is_listed_before(const addrinfo* first, const addrinfo* address) {
    for (; first != address; first = first->ai_next) {
        if (first->ai_addrlen == address->ai_addrlen &&
            std::memcmp(first->ai_addr, address->ai_addr, address->ai_addrlen) == 0) {
            return true;
        }
    }
    return false;
}

// A descriptor, or -1 with the reason in errno.
int listen_at(const addrinfo& address) {
    const int descriptor =
        ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) {
        return -1;
    }
    const int on = 1;  // not held up by connections of an earlier server
    ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (::bind(descriptor, address.ai_addr, address.ai_addrlen) < 0 ||
        ::listen(descriptor, SOMAXCONN) < 0) {
        const int reason = errno;
        ::close(descriptor);
        errno = reason;
        return -1;
    }
    return descriptor;
}

}  // namespace

ListeningSockets::ListeningSockets(const std::string& host, int port) {
    if (port < 0 || port > 65535) {
        fail("cannot listen on port ", port, ": expected 0 to 65535");
    }
    // A free port of the first address may be in use on the second.
    constexpr int kMaxTries = 16;
    for (int i = 0; !listen_on_all(host, port); ++i) {
        for (const int descriptor : release()) {
            ::close(descriptor);
        }
        if (port != 0 || i == kMaxTries) {
            fail("cannot listen on ", host, " port ", port, ": the address is already in use");
        }
    }
}

ListeningSockets::~ListeningSockets() {
    for (const int descriptor : descriptors_) {
        ::close(descriptor);
    }
}

std::vector<int> ListeningSockets::release() {
    return std::exchange(descriptors_, {});
}

// False: an address is in use. Addresses that this machine does not have are left out, unless that
// is all of them.
bool ListeningSockets::listen_on_all(const std::string& host, int port) {
    port_ = port;
    int reason = 0;
    const Addresses addresses = addresses_of(host, port);
    for (addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
        if (is_listed_before(addresses.get(), address)) {
            continue;
        }
        addrinfo chosen = *address;
        sockaddr_storage with_port{};
        std::memcpy(&with_port, address->ai_addr, address->ai_addrlen);
        chosen.ai_addr = reinterpret_cast<sockaddr*>(&with_port);
        set_port(*chosen.ai_addr, port_);
        const int descriptor = listen_at(chosen);
        if (descriptor >= 0) {
            descriptors_.push_back(descriptor);
            port_ = port_of(descriptor);
        } else if (errno == EADDRINUSE) {
            return false;
        } else {
            reason = errno;
        }
    }
    if (descriptors_.empty()) {
        fail("cannot listen on ", host, " port ", port, ": ",
             std::generic_category().message(reason));
    }
    return true;
}

}  // namespace knap
