// Requests and answers over sockets.
#include "serve/http/server.h"

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "support/http_client.h"
#include "support/http_rig.h"

namespace knap::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(HttpServer, AnswersOnAConnectionThatStaysOpen) {
    HttpRig rig;
    HttpClient client(rig.server.port());
    for (int i = 0; i < 3; ++i) {
        const HttpAnswer answer = client.get("/a%20b?c=d");
        EXPECT_EQ(answer.status, 200);
        EXPECT_EQ(answer.body, "GET /a b?c=d ");
        EXPECT_EQ(answer.headers.at("server"), "knap");
        EXPECT_EQ(answer.headers.at("connection"), "keep-alive");
        EXPECT_EQ(answer.headers.at("content-type"), "text/plain");
        EXPECT_NE(answer.headers.at("x-request-id"), "");
    }
    EXPECT_EQ(client.post("/x", "body").body, "POST /x? body");
    EXPECT_EQ(rig.server.n_connections(), 1);
}

TEST(HttpServer, EchoesTheRequestId) {
    HttpRig rig;
    HttpClient client(rig.server.port());
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Request-ID: mine-1\r\n\r\n");
    EXPECT_EQ(client.read_answer().headers.at("x-request-id"), "mine-1");
    const std::string made = client.get("/").headers.at("x-request-id");
    EXPECT_NE(made, "mine-1");
    client.send("nonsense\r\n\r\n");
    EXPECT_NE(client.read_answer().headers.at("x-request-id"), made);
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
    // The first answer is given last.
    std::vector<std::thread> threads;
    HttpRig rig([&](const std::shared_ptr<Exchange>& exchange) {
        threads.emplace_back([exchange] {
            std::this_thread::sleep_for(exchange->request().path == "/0" ? 20ms : 0ms);
            echo(exchange);
        });
    });
    HttpClient client(rig.server.port());
    std::string requests;
    for (int i = 0; i < 20; ++i) {
        requests +=
            "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxy";
    }
    client.send(requests);
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(client.read_answer().body, "POST /" + std::to_string(i) + "? xy");
    }
    rig.stop();
    for (std::thread& thread : threads) {
        thread.join();
    }
}

TEST(HttpServer, KeepsALongPipelineWithinBounds) {
    // Far more than the server reads ahead.
    HttpRig rig;
    HttpClient client(rig.server.port());
    const std::string body(300'000, 'x');
    std::thread sender([&] {
        for (int i = 0; i < 8; ++i) {
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n" + body);
        }
    });
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(client.read_answer().body, "POST /? " + body);
    }
    sender.join();
}

TEST(HttpServer, AnswersManyRefusedRequestsOfOneRead) {
    HttpRig rig(nullptr, {},
                [](const HttpRequest&) { return HttpResponse{.status = 401, .body = "no"}; });
    HttpClient client(rig.server.port());
    std::string requests;
    for (int i = 0; i < 2000; ++i) {
        requests += "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    }
    std::thread sender([&] { client.send(requests); });
    for (int i = 0; i < 2000; ++i) {
        ASSERT_EQ(client.read_answer().status, 401);
    }
    sender.join();
}

TEST(HttpServer, ClosesWhenAsked) {
    HttpRig rig;
    for (const char* request :
         {"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"}) {
        HttpClient client(rig.server.port());
        client.send(request);
        const HttpAnswer answer = client.read_answer();
        EXPECT_EQ(answer.status, 200);
        EXPECT_EQ(answer.headers.at("connection"), "close");
        EXPECT_TRUE(client.is_closed_within(10s));
    }
}

TEST(HttpServer, HeadHasNoBody) {
    HttpRig rig;
    HttpClient client(rig.server.port());
    client.send("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n");
    const HttpAnswer head = client.read_answer(false);
    EXPECT_EQ(head.headers.at("content-length"), std::to_string(std::string("HEAD /a? ").size()));
    EXPECT_EQ(client.read_answer().body, "GET /b? ");
}

TEST(HttpServer, StatusWithoutBodyLeavesNoBytes) {
    HttpRig rig([](const std::shared_ptr<Exchange>& exchange) {
        exchange->respond({.status = 204, .body = "unsent"});
    });
    HttpClient client(rig.server.port());
    EXPECT_EQ(client.get("/").status, 204);
    EXPECT_EQ(client.get("/").status, 204);
}

TEST(HttpServer, ContinuesWhenExpected) {
    HttpRig rig;
    HttpClient client(rig.server.port());
    const std::string head =
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: ";
    client.send(head + "3\r\n\r\n");
    EXPECT_EQ(client.read_answer().status, 100);
    client.send("abc");
    EXPECT_EQ(client.read_answer().body, "POST /? abc");
    // Not for a body that is refused.
    client.send(head + "99999999999\r\n\r\n");
    EXPECT_EQ(client.read_answer().status, 413);
    HttpClient other(rig.server.port());
    other.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\nContent-Length: 3\r\n\r\n");
    EXPECT_EQ(other.read_answer().status, 417);
}

TEST(HttpServer, RefusedRequestsAreAnsweredAndClosed) {
    HttpRig rig(nullptr, {.body_bytes = 100, .uri_bytes = 100, .header_bytes = 100});
    const std::string long_text(200, 'x');
    for (const auto& [request, status] : std::vector<std::pair<std::string, int>>{
             {"nonsense\r\n\r\n", 400},
             {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
             {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: "
              "chunked\r\n\r\n",
              400},
             {"GET /" + long_text + " HTTP/1.1\r\n\r\n", 414},
             {"GET / HTTP/1.1\r\nA: " + long_text + "\r\n\r\n", 431},
             {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n", 413},
             {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n", 413}}) {
        HttpClient client(rig.server.port());
        // What follows is neither read as a request nor a reason to lose the answer.
        client.send(request + std::string(100'000, 'x'));
        const HttpAnswer answer = client.read_answer();
        EXPECT_EQ(answer.status, status) << request;
        EXPECT_THAT(answer.body, HasSubstr("error " + std::to_string(status)));
        EXPECT_EQ(answer.headers.at("content-type"), "application/json");
        EXPECT_EQ(answer.headers.at("connection"), "close");
        EXPECT_EQ(client.read_all(), "");
        EXPECT_FALSE(client.was_reset());
    }
    EXPECT_EQ(HttpClient(rig.server.port()).post("/", std::string(100, 'x')).status, 200);
}

TEST(HttpServer, ChecksHeadersBeforeTheBody) {
    std::atomic<int> n_handled = 0;
    HttpRig rig(
        [&](const std::shared_ptr<Exchange>& exchange) {
            ++n_handled;
            echo(exchange);
        },
        {},
        [](const HttpRequest& head) -> std::optional<HttpResponse> {
            if (head.header("Authorization") == "Bearer key") {
                return std::nullopt;
            }
            return HttpResponse{.status = 401, .headers = {{"WWW-Authenticate", "Bearer"}}};
        });
    HttpClient client(rig.server.port());
    // Without a body the connection stays.
    EXPECT_EQ(client.get("/").status, 401);
    EXPECT_EQ(client.get("/").headers.at("www-authenticate"), "Bearer");
    client.send("GET / HTTP/1.1\r\nHost: a\r\nauthorization: Bearer key\r\n\r\n");
    EXPECT_EQ(client.read_answer().status, 200);
    // The body never comes.
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    const HttpAnswer answer = client.read_answer();
    EXPECT_EQ(answer.status, 401);
    EXPECT_EQ(answer.headers.at("connection"), "close");
    EXPECT_EQ(n_handled, 1);
}

TEST(HttpServer, FaultsEndOneRequest) {
    std::mutex mutex;
    std::string log;
    set_log(LogLevel::warning, [&](LogLevel, std::string_view text) {
        const std::lock_guard lock(mutex);
        log += text;
    });
    {
        HttpRig rig(
            [](const std::shared_ptr<Exchange>& exchange) {
                if (exchange->request().path == "/throw") {
                    throw std::runtime_error("oh no");
                }
                if (exchange->request().path == "/ok") {
                    echo(exchange);
                }
            },
            {},
            [](const HttpRequest& head) -> std::optional<HttpResponse> {
                if (head.path == "/check") {
                    throw std::runtime_error("unchecked");
                }
                return std::nullopt;
            });
        for (const char* path : {"/throw", "/dropped", "/check"}) {
            HttpClient client(rig.server.port());
            const HttpAnswer answer = client.get(path);
            EXPECT_EQ(answer.status, 500) << path;
            EXPECT_EQ(answer.body, "error 500: internal error");
            EXPECT_EQ(HttpClient(rig.server.port()).get("/ok").status, 200);
        }
    }
    set_log(LogLevel::warning, {});
    EXPECT_THAT(log, HasSubstr("oh no"));
    EXPECT_THAT(log, HasSubstr("unchecked"));
}

TEST(HttpServer, ServesNamesAndBothFamilies) {
    for (const auto& [host, client_host] :
         {std::pair("::1", "::1"), std::pair("localhost", "127.0.0.1"), std::pair("::", "::1")}) {
        std::optional<HttpServer> server;
        try {
            server.emplace(HttpConfig{.host = host, .port = 0}, nullptr, echo, test_error_body);
        } catch (const Error& error) {
            GTEST_SKIP() << "no IPv6 here: " << error.what();
        }
        std::thread thread([&] { server->run(); });
        EXPECT_EQ(HttpClient(server->port(), client_host).get("/").status, 200) << host;
        server->stop();
        thread.join();
    }
}

TEST(HttpServer, SaysWhyItCannotListen) {
    const auto failure = [](const std::string& host, int port) -> std::string {
        try {
            HttpServer server({.host = host, .port = port}, nullptr, echo, test_error_body);
        } catch (const Error& error) {
            return error.what();
        }
        return "none";
    };
    HttpRig rig;
    EXPECT_THAT(failure("127.0.0.1", rig.server.port()), HasSubstr("already in use"));
    EXPECT_THAT(failure("localhost", rig.server.port()), HasSubstr("already in use"));
    EXPECT_THAT(failure("no such host", 0), HasSubstr("no such host"));
    EXPECT_THAT(failure("192.0.2.1", 0), HasSubstr("192.0.2.1"));
    EXPECT_THAT(failure("127.0.0.1", 65536), HasSubstr("65536"));
    EXPECT_THAT(failure("127.0.0.1", -1), HasSubstr("-1"));
    EXPECT_EQ(failure("127.0.0.1", 0), "none");
}

TEST(HttpServer, RunsTasksOnTheThreadOfTheLoop) {
    HttpRig rig;
    std::mutex mutex;
    std::vector<std::string> order;
    std::vector<std::thread::id> threads;
    const auto note = [&](const char* what) {
        const std::lock_guard lock(mutex);
        order.emplace_back(what);
        threads.push_back(std::this_thread::get_id());
    };
    rig.server.after(60ms, [&] { note("late"); });
    rig.server.after(20ms, [&] { note("early"); });
    rig.server.after(1h, [&] { note("never"); });
    rig.server.post([&] { note("now"); });
    ASSERT_TRUE(eventually([&] {
        const std::lock_guard lock(mutex);
        return order.size() == 3;
    }));
    EXPECT_EQ(order, (std::vector<std::string>{"now", "early", "late"}));
    EXPECT_EQ(threads[0], threads[2]);
    EXPECT_NE(threads[0], std::this_thread::get_id());
}

}  // namespace
}  // namespace knap::test
