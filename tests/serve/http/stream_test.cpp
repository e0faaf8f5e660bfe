// Streams, and clients that leave or do not read.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "serve/http/server.h"
#include "support/http_client.h"
#include "support/http_rig.h"

namespace knap::test {
namespace {

using namespace std::chrono_literals;

const HttpResponse kEvents{.content_type = "text/event-stream",
                           .headers = {{"Cache-Control", "no-cache"}}};

// Hands each exchange to the test.
class Caught {
  public:
    Handler handler() {
        return [this](const std::shared_ptr<Exchange>& exchange) {
            exchange->on_gone([this] { ++n_gone; });
            const std::lock_guard lock(mutex_);
            exchange_ = exchange;
        };
    }
    std::shared_ptr<Exchange> wait() {
        std::shared_ptr<Exchange> caught;
        EXPECT_TRUE(eventually([&] {
            const std::lock_guard lock(mutex_);
            caught = std::exchange(exchange_, nullptr);
            return caught != nullptr;
        }));
        return caught;
    }
    std::atomic<int> n_gone = 0;

  private:
    std::mutex mutex_{};
    std::shared_ptr<Exchange> exchange_{};
};

const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

TEST(HttpStream, SendsPartsAsTheyCome) {
    Caught caught;
    HttpRig rig(caught.handler());
    HttpClient client(rig.server.port());
    for (int i = 0; i < 2; ++i) {
        client.send(kGet);
        const auto exchange = caught.wait();
        exchange->begin_stream(kEvents);
        const HttpAnswer head = client.read_head();
        EXPECT_EQ(head.status, 200);
        EXPECT_EQ(head.headers.at("content-type"), "text/event-stream");
        EXPECT_EQ(head.headers.at("cache-control"), "no-cache");
        EXPECT_EQ(head.headers.at("transfer-encoding"), "chunked");
        exchange->send("data: 1\n\n");
        EXPECT_TRUE(client.read_until("9\r\ndata: 1\n\n\r\n"));
        exchange->send("");  // not the last chunk
        exchange->send("data: 2\n\n");
        EXPECT_TRUE(client.read_until("9\r\ndata: 2\n\n\r\n"));
        exchange->end_stream();
        EXPECT_TRUE(client.read_until("0\r\n\r\n"));
    }
    EXPECT_EQ(caught.n_gone, 0);
}

TEST(HttpStream, MayBeginWithABody) {
    Caught caught;
    HttpRig rig(caught.handler());
    HttpClient client(rig.server.port());
    client.send(kGet);
    const auto exchange = caught.wait();
    exchange->begin_stream({.body = "first "});
    exchange->send("second");
    exchange->end_stream();
    const HttpAnswer answer = client.read_answer();
    EXPECT_EQ(answer.body, "first second");
    EXPECT_TRUE(answer.is_complete);
}

TEST(HttpStream, OldClientsReadUntilTheEnd) {
    Caught caught;
    HttpRig rig(caught.handler());
    HttpClient client(rig.server.port());
    client.send("GET / HTTP/1.0\r\n\r\n");
    const auto exchange = caught.wait();
    exchange->begin_stream(kEvents);
    exchange->send("data: 1\n\n");
    exchange->end_stream();
    const HttpAnswer answer = client.read_answer();
    EXPECT_FALSE(answer.headers.contains("transfer-encoding"));
    EXPECT_EQ(answer.headers.at("connection"), "close");
    EXPECT_EQ(answer.body, "data: 1\n\n");
}

TEST(HttpStream, HeadOfAStreamHasNoBody) {
    Caught caught;
    HttpRig rig(caught.handler());
    HttpClient client(rig.server.port());
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + kGet);
    auto exchange = caught.wait();
    exchange->begin_stream({.body = "x"});
    exchange->send("unsent");
    exchange->end_stream();
    EXPECT_EQ(client.read_answer(false).status, 200);
    exchange = caught.wait();
    exchange->respond({.body = "next"});
    EXPECT_EQ(client.read_answer().body, "next");
}

TEST(HttpStream, BrokenStreamsLookIncomplete) {
    for (const bool is_dropped : {false, true}) {
        Caught caught;
        HttpRig rig(caught.handler());
        HttpClient client(rig.server.port());
        client.send(kGet);
        auto exchange = caught.wait();
        exchange->begin_stream(kEvents);
        exchange->send("data: {\"error\":1}\n\n");
        if (!is_dropped) {
            exchange->break_stream();
        }
        exchange.reset();
        // What was sent before arrives; the last chunk does not.
        const HttpAnswer answer = client.read_answer();
        EXPECT_EQ(answer.body, "data: {\"error\":1}\n\n");
        EXPECT_FALSE(answer.is_complete);
    }
}

TEST(HttpStream, BrokenStreamsOfOldClientsAreReset) {
    Caught caught;
    HttpRig rig(caught.handler());
    for (const bool is_broken : {false, true}) {
        HttpClient client(rig.server.port());
        client.send("GET / HTTP/1.0\r\n\r\n");
        const auto exchange = caught.wait();
        exchange->begin_stream(kEvents);
        exchange->send("data: 1\n\n");
        EXPECT_TRUE(client.read_until("data: 1\n\n"));
        is_broken ? exchange->break_stream() : exchange->end_stream();
        EXPECT_EQ(client.read_all(), "");
        EXPECT_EQ(client.was_reset(), is_broken);
    }
}

TEST(HttpStream, SilenceIsFilledWithComments) {
    Caught caught;
    HttpRig rig(caught.handler(), {.heartbeat = 20ms});
    HttpClient client(rig.server.port());
    client.send(kGet);
    const auto exchange = caught.wait();
    std::this_thread::sleep_for(60ms);  // no comment before the stream begins
    exchange->begin_stream(kEvents);
    EXPECT_EQ(client.read_head().status, 200);
    EXPECT_TRUE(client.read_until("3\r\n:\n\n\r\n3\r\n:\n\n\r\n"));
    exchange->end_stream();
    EXPECT_TRUE(client.read_until("0\r\n\r\n"));
}

// The ways in which a client may leave.
void leave(HttpClient& client, bool by_reset) {
    by_reset ? client.reset() : client.finish_sending();
}

TEST(HttpStream, NoticesClientsThatLeave) {
    for (const bool is_streaming : {false, true}) {
        for (const bool by_reset : {false, true}) {
            Caught caught;
            HttpRig rig(caught.handler());
            HttpClient client(rig.server.port());
            client.send(kGet);
            const auto exchange = caught.wait();
            if (is_streaming) {
                exchange->begin_stream(kEvents);
                exchange->send("data: 1\n\n");
                EXPECT_TRUE(client.read_until("data: 1"));
            }
            EXPECT_FALSE(exchange->is_gone());
            leave(client, by_reset);
            EXPECT_TRUE(eventually([&] { return caught.n_gone == 1; }));
            EXPECT_TRUE(exchange->is_gone());
            std::atomic<bool> is_called_at_once = false;
            exchange->on_gone([&] { is_called_at_once = true; });
            EXPECT_TRUE(eventually([&] { return is_called_at_once.load(); }));
            // The server does not mind.
            if (is_streaming) {
                exchange->send("data: 2\n\n");
                exchange->end_stream();
            } else {
                exchange->respond({});
            }
            EXPECT_TRUE(eventually([&] { return rig.server.n_connections() == 0; }));
        }
    }
}

TEST(HttpStream, AClientThatHalfClosesGetsAWholeAnswer) {
    Caught caught;
    HttpRig rig(caught.handler());
    HttpClient client(rig.server.port());
    client.send(kGet + kGet);
    client.finish_sending();
    for (int i = 0; i < 2; ++i) {
        const auto exchange = caught.wait();
        EXPECT_TRUE(eventually([&] { return exchange->is_gone(); }));
        exchange->respond({.body = "still here"});
        EXPECT_EQ(client.read_answer().body, "still here");
    }
    EXPECT_TRUE(client.is_closed_within(10s));
}

TEST(HttpStream, AnAnswerThatNobodyWaitsForIsNoFault) {
    Caught caught;
    HttpRig rig(caught.handler());
    HttpClient client(rig.server.port());
    client.send(kGet);
    client.finish_sending();
    auto exchange = caught.wait();
    EXPECT_TRUE(eventually([&] { return exchange->is_gone(); }));
    exchange.reset();  // without an answer: otherwise that is 500
    EXPECT_EQ(client.read_all(), "");
}

TEST(HttpStream, NoticesClientsThatLeaveWithAFullPipeline) {
    Caught caught;
    HttpRig rig(caught.handler());
    HttpClient client(rig.server.port());
    client.send(kGet + std::string(80'000, 'x'));  // more than is read ahead
    const auto exchange = caught.wait();
    client.finish_sending();
    EXPECT_TRUE(eventually([&] { return caught.n_gone == 1; }));
    EXPECT_TRUE(exchange->is_gone());
}

TEST(HttpStream, WritingToAClientThatLeftDoesNotKill) {
    // Neither by the signal nor otherwise.
    const auto before = std::signal(SIGPIPE, SIG_DFL);
    Caught caught;
    HttpRig rig(caught.handler());
    for (int i = 0; i < 20; ++i) {
        HttpClient client(rig.server.port());
        client.send(kGet);
        const auto exchange = caught.wait();
        exchange->begin_stream(kEvents);
        client.reset();
        for (int k = 0; k < 100; ++k) {
            exchange->send("data: x\n\n");
        }
        exchange->end_stream();
    }
    // A reset after the end of input is found by the first byte that is sent.
    HttpClient client(rig.server.port());
    client.send(kGet);
    const auto exchange = caught.wait();
    client.finish_sending();
    EXPECT_TRUE(eventually([&] { return exchange->is_gone(); }));
    client.reset();
    exchange->respond({});
    EXPECT_TRUE(eventually([&] { return rig.server.n_connections() == 0; }));
    std::signal(SIGPIPE, before);
}

TEST(HttpStream, ASlowReaderIsBackloggedAndCatchesUp) {
    Caught caught;
    HttpRig rig(caught.handler(), {.unsent_bytes = 100'000});
    HttpClient client(rig.server.port(), "127.0.0.1", 4096);
    client.send(kGet);
    const auto exchange = caught.wait();
    exchange->begin_stream(kEvents);
    const std::string part(10'000, 'x');
    std::size_t n_sent = 0;
    while (!exchange->is_backlogged()) {
        exchange->send(part);
        n_sent += part.size();
        ASSERT_LT(n_sent, 100'000'000u);
    }
    // Once the client reads, there is room again.
    std::thread ending([&] {
        EXPECT_TRUE(eventually([&] { return !exchange->is_backlogged(); }));
        exchange->end_stream();
    });
    const HttpAnswer answer = client.read_answer();
    ending.join();
    EXPECT_TRUE(answer.is_complete);
    EXPECT_EQ(answer.body, std::string(n_sent, 'x'));
    EXPECT_EQ(caught.n_gone, 0);
}

TEST(HttpStream, AClientThatDoesNotReadIsCutOff) {
    Caught caught;
    HttpRig rig(caught.handler(), {.unsent_time = 50ms});
    HttpClient client(rig.server.port(), "127.0.0.1", 4096);
    client.send(kGet);
    const auto exchange = caught.wait();
    exchange->begin_stream(kEvents);
    EXPECT_TRUE(eventually([&] {
        if (!exchange->is_backlogged()) {
            exchange->send(std::string(1'000'000, 'x'));  // until no buffer takes more
        }
        return caught.n_gone == 1;
    }));
    EXPECT_TRUE(exchange->is_gone());
    EXPECT_EQ(rig.server.n_connections(), 0);
    // Somebody who is not served is not waited for either.
    HttpClient other(rig.server.port());
    other.send(kGet);
    caught.wait()->respond({.body = "fast"});
    EXPECT_EQ(other.read_answer().body, "fast");
}

TEST(HttpStream, OnGoneIsNotCalledAfterTheAnswer) {
    Caught caught;
    HttpRig rig(caught.handler());
    {
        HttpClient client(rig.server.port());
        client.send(kGet);
        auto exchange = caught.wait();
        // The callback may hold the exchange.
        std::weak_ptr<Exchange> weak = exchange;
        exchange->on_gone([exchange] {});
        exchange->respond({.body = "x"});
        exchange.reset();
        EXPECT_EQ(client.read_answer().body, "x");
        EXPECT_TRUE(eventually([&] { return weak.expired(); }));
    }
    EXPECT_TRUE(eventually([&] { return rig.server.n_connections() == 0; }));
    EXPECT_EQ(caught.n_gone, 0);
}

TEST(HttpStream, ManyThreadsSendAtOnce) {
    Caught caught;
    HttpRig rig(caught.handler());
    constexpr int kThreads = 8;
    constexpr int kParts = 200;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        HttpClient client(rig.server.port());
        client.send(kGet);
        threads.clear();
        const auto exchange = caught.wait();
        exchange->begin_stream(kEvents);
        for (int i = 0; i < kThreads; ++i) {
            threads.emplace_back([&, i] {
                for (int k = 0; k < kParts; ++k) {
                    exchange->send(std::string(1, static_cast<char>('a' + i)));
                    (void)exchange->is_backlogged();
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        exchange->end_stream();
        const HttpAnswer answer = client.read_answer();
        EXPECT_TRUE(answer.is_complete);
        for (int i = 0; i < kThreads; ++i) {
            EXPECT_EQ(std::ranges::count(answer.body, static_cast<char>('a' + i)), kParts);
        }
    }
}

}  // namespace
}  // namespace knap::test
