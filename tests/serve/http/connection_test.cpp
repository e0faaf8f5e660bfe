// Times, many connections, and the end of a server.
#include "serve/http/connection.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "support/http_client.h"
#include "support/http_rig.h"

namespace knap::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

const std::string kRequest = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

TEST(HttpConnection, SlowHeadersAreRefused) {
    HttpRig rig(nullptr, {.header_time = 100ms, .keep_alive = 1h});
    for (const bool is_first : {true, false}) {
        HttpClient client(rig.server.port());
        if (!is_first) {
            EXPECT_EQ(client.get("/").status, 200);
        }
        // A byte now and then does not help.
        client.send("GET / HTTP/1.1\r\nHost: ");
        std::thread slow([&] {
            while (client.send("x")) {
                std::this_thread::sleep_for(10ms);
            }
        });
        const HttpAnswer answer = client.read_answer();
        EXPECT_EQ(answer.status, 408);
        EXPECT_EQ(answer.headers.at("connection"), "close");
        slow.join();
    }
}

TEST(HttpConnection, SlowBodiesAreRefused) {
    HttpRig rig(nullptr, {.body_time = 50ms});
    for (const char* body :
         {"Content-Length: 5\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"}) {
        HttpClient client(rig.server.port());
        client.send(std::string("POST / HTTP/1.1\r\nHost: a\r\n") + body);
        EXPECT_EQ(client.read_answer().status, 408);
    }
}

TEST(HttpConnection, IdleConnectionsAreClosedSilently) {
    HttpRig rig(nullptr, {.header_time = 50ms, .keep_alive = 50ms});
    HttpClient never_used(rig.server.port());
    EXPECT_TRUE(never_used.is_closed_within(10s));
    HttpClient client(rig.server.port());
    EXPECT_EQ(client.get("/").status, 200);
    EXPECT_TRUE(client.is_closed_within(10s));
    EXPECT_TRUE(eventually([&] { return rig.server.n_connections() == 0; }));
}

TEST(HttpConnection, NoTimeRunsWhileAnAnswerIsComputed) {
    std::thread worker;
    HttpRig rig(
        [&](const std::shared_ptr<Exchange>& exchange) {
            worker = std::thread([exchange] {
                std::this_thread::sleep_for(100ms);
                echo(exchange);
            });
        },
        {.header_time = 20ms, .body_time = 20ms, .keep_alive = 20ms, .unsent_time = 20ms});
    HttpClient client(rig.server.port());
    EXPECT_EQ(client.post("/", "x").status, 200);
    worker.join();
}

TEST(HttpConnection, IdleConnectionsDoNotSlowOthers) {
    HttpRig rig;
    std::vector<std::unique_ptr<HttpClient>> idle;
    for (int i = 0; i < 400; ++i) {
        idle.push_back(std::make_unique<HttpClient>(rig.server.port()));
        if (i % 2 == 1) {
            idle.back()->send("GET / HTTP/1.1\r\nHost: ");
        }
    }
    EXPECT_TRUE(eventually([&] { return rig.server.n_connections() == 400; }));
    // The best of a few: other programs may delay any of them.
    auto best = Clock::duration::max();
    for (int i = 0; i < 10; ++i) {
        const auto start = Clock::now();
        EXPECT_EQ(HttpClient(rig.server.port()).get("/").status, 200);
        best = std::min(best, Clock::now() - start);
    }
    EXPECT_LT(best, 100ms);
    idle.clear();
    EXPECT_TRUE(eventually([&] { return rig.server.n_connections() == 0; }));
}

TEST(HttpConnection, WaitsForFreeDescriptors) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the undefined behaviour sanitizer needs descriptors to look at objects";
#endif
    std::mutex mutex;
    std::vector<std::string> log;
    set_log(LogLevel::warning, [&](LogLevel, std::string_view text) {
        const std::lock_guard lock(mutex);
        log.emplace_back(text);
    });
    const auto n_logged = [&] {
        const std::lock_guard lock(mutex);
        return log.size();
    };
    {
        HttpRig rig;
        HttpClient served(rig.server.port());
        EXPECT_EQ(served.get("/").status, 200);
        // This socket is open already; only accept() lacks a descriptor.
        HttpClient waiting(rig.server.port());
        EXPECT_TRUE(eventually([&] { return rig.server.n_connections() == 2; }));
        const int next = dup(0);
        close(next);
        rlimit before{};
        getrlimit(RLIMIT_NOFILE, &before);
        rlimit few = before;
        few.rlim_cur = static_cast<rlim_t>(next) + 1;  // one more: for the client
        setrlimit(RLIMIT_NOFILE, &few);
        HttpClient late(rig.server.port());
        EXPECT_TRUE(eventually([&] { return n_logged() == 1; }));
        late.send(kRequest);
        EXPECT_EQ(served.get("/").status, 200);  // others are served meanwhile
        rusage start{};
        getrusage(RUSAGE_SELF, &start);
        std::this_thread::sleep_for(300ms);
        rusage end{};
        getrusage(RUSAGE_SELF, &end);
        const auto n_us = [](const rusage& usage) {
            return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 +
                   usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
        };
        EXPECT_LT(n_us(end) - n_us(start), 50'000) << "it spins";
        setrlimit(RLIMIT_NOFILE, &before);
        EXPECT_EQ(late.read_answer().status, 200);
        EXPECT_EQ(n_logged(), 1u);
    }
    set_log(LogLevel::warning, {});
    EXPECT_THAT(log.at(0), testing::HasSubstr("ulimit"));
}

TEST(HttpServerEnd, StopAcceptingClosesWhatIsIdle) {
    std::shared_ptr<Exchange> under_way;
    std::atomic<bool> has_request = false;
    HttpRig rig([&](const std::shared_ptr<Exchange>& exchange) {
        if (exchange->request().path == "/slow") {
            under_way = exchange;
            has_request = true;
        } else {
            echo(exchange);
        }
    });
    HttpClient unused(rig.server.port());
    HttpClient idle(rig.server.port());
    EXPECT_EQ(idle.get("/").status, 200);
    HttpClient partial(rig.server.port());
    partial.send("GET / HTTP/1.1\r\n");
    HttpClient busy(rig.server.port());
    busy.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(eventually([&] { return has_request && rig.server.n_connections() == 4; }));
    std::this_thread::sleep_for(20ms);  // the bytes of `partial` arrive

    rig.server.stop_accepting();
    EXPECT_TRUE(idle.is_closed_within(10s));
    EXPECT_TRUE(unused.is_closed_within(10s));
    EXPECT_ANY_THROW(HttpClient(rig.server.port()));
    partial.send("Host: a\r\n\r\n");
    const HttpAnswer partial_answer = partial.read_answer();
    EXPECT_EQ(partial_answer.status, 200);
    EXPECT_EQ(partial_answer.headers.at("connection"), "close");
    under_way->respond({.body = "done"});
    const HttpAnswer answer = busy.read_answer();
    EXPECT_EQ(answer.body, "done");
    EXPECT_EQ(answer.headers.at("connection"), "close");
    EXPECT_TRUE(busy.is_closed_within(10s));
    rig.server.stop_accepting();
    rig.stop();
    rig.server.stop();
}

TEST(HttpServerEnd, ExchangesMayOutliveTheServer) {
    std::shared_ptr<Exchange> waiting;
    std::shared_ptr<Exchange> streaming;
    std::atomic<int> n_gone = 0;
    {
        std::atomic<int> n_requests = 0;
        HttpRig rig([&](const std::shared_ptr<Exchange>& exchange) {
            exchange->on_gone([&n_gone, exchange] { ++n_gone; });
            if (exchange->request().path == "/stream") {
                streaming = exchange;
                exchange->begin_stream({});
            } else {
                waiting = exchange;
            }
            ++n_requests;
        });
        HttpClient first(rig.server.port());
        HttpClient second(rig.server.port());
        first.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
        second.send(kRequest);
        EXPECT_TRUE(eventually([&] { return n_requests == 2; }));
        EXPECT_EQ(first.read_head().status, 200);
        rig.stop();
        EXPECT_EQ(n_gone, 2);
        EXPECT_EQ(first.read_all(), "");
        waiting->on_gone([&] { ++n_gone; });
        EXPECT_EQ(n_gone, 3);
    }
    EXPECT_TRUE(waiting->is_gone());
    EXPECT_TRUE(streaming->is_gone());
    EXPECT_EQ(waiting->request().path, "/");
    waiting->on_gone([&] { ++n_gone; });
    EXPECT_EQ(n_gone, 4);
    waiting->respond({.body = "too late"});
    streaming->send("too late");
    streaming->end_stream();
}

TEST(HttpServerEnd, ThreadsMaySendWhileTheServerStops) {
    for (int i = 0; i < 20; ++i) {
        std::vector<std::thread> threads;
        auto rig = std::make_unique<HttpRig>([&](const std::shared_ptr<Exchange>& exchange) {
            threads.emplace_back([exchange] {
                std::atomic<bool> is_gone = false;
                exchange->on_gone([&] { is_gone = true; });
                exchange->begin_stream({});
                while (!is_gone) {
                    exchange->send("x");
                    std::this_thread::yield();
                }
                exchange->end_stream();
            });
        });
        std::vector<std::unique_ptr<HttpClient>> clients;
        for (int k = 0; k < 4; ++k) {
            clients.push_back(std::make_unique<HttpClient>(rig->server.port()));
            clients.back()->send(kRequest);
        }
        EXPECT_EQ(clients[0]->read_head().status, 200);
        rig.reset();
        for (std::thread& thread : threads) {
            thread.join();
        }
    }
}

TEST(HttpServerEnd, AServerThatNeverRanMayEnd) {
    HttpServer server({.port = 0}, nullptr, echo, test_error_body);
    server.post([] {});
    server.after(1ms, [] {});
    HttpClient client(server.port());
    client.send(kRequest);
    server.stop_accepting();
    server.stop();
}

TEST(HttpServerEnd, StopBeforeRunEndsIt) {
    HttpServer server({.port = 0}, nullptr, echo, test_error_body);
    server.stop();
    server.stop();
    server.run();
    server.stop();
    EXPECT_EQ(server.n_connections(), 0);
}

}  // namespace
}  // namespace knap::test
