#include "device/worker_address.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "knap/types.h"

#include "support/free_port.h"

namespace knap::worker_address_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// A socket that listens on loopback, and one that is connected to it.
class Pair {
  public:
    Pair() : listener_(make_socket()), client_(make_socket()) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
        listen(listener_, 8);
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
        EXPECT_EQ(connect(client_, reinterpret_cast<sockaddr*>(&address), size), 0);
        address_ = {"127.0.0.1", ntohs(address.sin_port)};
    }
    ~Pair() {
        close(client_);
        close(listener_);
    }
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;

    const WorkerAddress& address() const { return address_; }
    int client_option(int level, int option) const {
        int value = -1;
        socklen_t size = sizeof value;
        getsockopt(client_, level, option, &value, &size);
        return value;
    }

  private:
    static int make_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

    int listener_;
    int client_;
    WorkerAddress address_;
};

TEST(WorkerAddress, IsAHostAndAPort) {
    const WorkerAddress address = parse_worker_address("gpu-box.local:50052");
    EXPECT_EQ(address.host, "gpu-box.local");
    EXPECT_EQ(address.port, 50052);
    EXPECT_EQ(address.text(), "gpu-box.local:50052");
    for (const char* text : {"", ":", "host", "host:", ":1", "host:0", "host:65536", "host:-1",
                             "host:1 ", "host:x", "::1:50052"}) {
        EXPECT_THAT([&] { parse_worker_address(text); },
                    ThrowsMessage<Error>(HasSubstr("`.workers`: expected host:port")))
            << text;
    }
}

TEST(WorkerAddress, IsReachableWhenAProcessListens) {
    const Pair pair;
    EXPECT_NO_THROW(check_reachable(pair.address()));
    EXPECT_NO_THROW(check_reachable({"localhost", pair.address().port}));
    EXPECT_THAT(
        [] {
            check_reachable({"127.0.0.1", test::free_port()});
        },
        ThrowsMessage<Error>(HasSubstr("found none (Connection refused)")));
}

TEST(WorkerAddress, CanBeListenedOnWhenItIsFree) {
    const Pair pair;
    EXPECT_THAT([&] { check_can_listen(pair.address()); },
                ThrowsMessage<Error>(HasSubstr("that are free here (Address already in use)")));
    EXPECT_NO_THROW(check_can_listen({"127.0.0.1", test::free_port()}));
    EXPECT_THAT(
        [] {
            check_can_listen({"203.0.113.1", test::free_port()});
        },
        ThrowsMessage<Error>(HasSubstr("that are free here")));
}

TEST(WorkerAddress, SilenceLimitAppliesOnlyToItsConnections) {
    const Pair worker;
    const Pair other;
    limit_silence(worker.address());
    EXPECT_EQ(worker.client_option(SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(worker.client_option(IPPROTO_TCP, TCP_KEEPCNT), 3);
    EXPECT_EQ(worker.client_option(IPPROTO_TCP, TCP_USER_TIMEOUT), 30000);
    EXPECT_EQ(other.client_option(SOL_SOCKET, SO_KEEPALIVE), 0);
    EXPECT_EQ(other.client_option(IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
}

}  // namespace
}  // namespace knap::worker_address_test
