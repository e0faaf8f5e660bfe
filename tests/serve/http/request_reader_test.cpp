#include "serve/http/request_reader.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace knap {
namespace {

using Result = RequestReader::Result;

// What a reader makes of bytes that arrive in parts: a line for each request, or the refusal.
std::string requests_in(const std::vector<std::string>& parts, const HttpLimits& limits = {}) {
    RequestReader reader(limits);
    std::string received;
    std::string seen;
    for (const std::string& part : parts) {
        received += part;
        for (;;) {
            const Result result = reader.read(received);
            if (result == Result::need_more) {
                break;
            }
            if (result == Result::refused) {
                return seen + std::to_string(reader.status());
            }
            if (result == Result::complete) {
                const HttpRequest& request = reader.request();
                seen += request.method + " " + request.path + " " + request.body + "\n";
                reader.start_next();
            }
        }
    }
    return seen + (reader.is_at_start() && received.empty() ? "" : "incomplete");
}

std::string get_with(const std::string& headers) {
    return "GET / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n";
}

// Beast has an assertion about this, which release builds leave out.
TEST(RequestReader, ALastChunkMayArriveByteByByte) {
    std::vector<std::string> bytes;
    for (const char c :
         std::string("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "0\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n")) {
        bytes.emplace_back(1, c);
    }
    EXPECT_EQ(requests_in(bytes), "POST / \nGET /b \n");
}

TEST(RequestReader, RefusesAlikeHoweverTheBytesArrive) {
    const std::string bytes = "GET / HTTP/1.1\r\nHost: a\n\nX: b\r\n\r\n";
    std::vector<std::string> messages;
    for (const std::size_t n : {std::size_t{1}, bytes.size()}) {
        const HttpLimits limits;
        RequestReader reader(limits);
        std::string received;
        Result result = Result::need_more;
        for (std::size_t at = 0; at < bytes.size() && result == Result::need_more; at += n) {
            received += bytes.substr(at, n);
            result = reader.read(received);
        }
        EXPECT_EQ(result, Result::refused);
        messages.push_back(reader.message());
    }
    EXPECT_EQ(messages[0], messages[1]);
}

TEST(RequestReader, ReadsRequestsHoweverTheyAreSplit) {
    const std::string bytes =
        "GET /a%20b?c HTTP/1.1\r\nHost: a\r\n\r\n"
        "\r\n"
        "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
        "POST /c HTTP/1.1\r\nhost:a\r\ntransfer-encoding: Chunked\r\n\r\n"
        "3;x=y\r\nabc\r\n00A\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n"
        "HEAD /d HTTP/1.0\r\n\r\n";
    const std::string expected = "GET /a b \nPOST /b hello\nPOST /c abc0123456789\nHEAD /d \n";
    ASSERT_EQ(requests_in({bytes}), expected);
    std::vector<std::string> single_bytes;
    for (const char byte : bytes) {
        single_bytes.emplace_back(1, byte);
    }
    EXPECT_EQ(requests_in(single_bytes), expected);
    std::mt19937 random(1);
    for (int i = 0; i < 200; ++i) {
        std::vector<std::string> parts;
        for (std::size_t begin = 0; begin < bytes.size();) {
            const std::size_t n = 1 + random() % 40;
            parts.push_back(bytes.substr(begin, n));
            begin += n;
        }
        ASSERT_EQ(requests_in(parts), expected) << "case " << i;
    }
}

TEST(RequestReader, RefusesOneByteTooMuch) {
    const HttpLimits limits{
        .body_bytes = 10, .uri_bytes = 20, .header_bytes = 60, .header_count = 3};
    const auto with_uri = [](int n) {
        return "GET /" + std::string(n - 1, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n";
    };
    EXPECT_EQ(requests_in({with_uri(20)}, limits), "GET /" + std::string(19, 'x') + " \n");
    EXPECT_EQ(requests_in({with_uri(21)}, limits), "414");
    // Without waiting for the end of the line.
    EXPECT_EQ(requests_in({"GET /" + std::string(20, 'x')}, limits), "414");

    const int n_other_bytes = 9 + 5 + 2;  // "Host: a", "A: " with line end, empty line
    const auto with_headers = [&](int n) {
        return get_with("A: " + std::string(n - n_other_bytes, 'x') + "\r\n");
    };
    EXPECT_EQ(requests_in({with_headers(60)}, limits), "GET / \n");
    EXPECT_EQ(requests_in({with_headers(61)}, limits), "431");
    EXPECT_EQ(requests_in({"GET / HTTP/1.1\r\n" + std::string(61, 'x')}, limits), "431");
    EXPECT_EQ(requests_in({get_with("A: 1\r\nB: 2\r\n")}, limits), "GET / \n");
    EXPECT_EQ(requests_in({get_with("A: 1\r\nB: 2\r\nC: 3\r\n")}, limits), "431");

    const std::string chunked = get_with("Transfer-Encoding: chunked\r\n");
    EXPECT_EQ(requests_in({chunked + "6\r\nabcdef\r\n4\r\nghij\r\n0\r\n\r\n"}, limits),
              "GET / abcdefghij\n");
    EXPECT_EQ(requests_in({chunked + "6\r\nabcdef\r\n5\r\n"}, limits), "413");
    EXPECT_EQ(requests_in({chunked + "ffffffffffffffff\r\n"}, limits), "413");
}

TEST(RequestReader, KnowsThatAnAnnouncedBodyIsTooLong) {
    const HttpLimits limits{.body_bytes = 10};
    for (const auto& [length, is_too_long] :
         {std::pair("10", false), std::pair("11", true), std::pair("18446744073709551615", true)}) {
        RequestReader reader(limits);
        std::string received = get_with("Content-Length: " + std::string(length) + "\r\n");
        ASSERT_EQ(reader.read(received), Result::head);
        EXPECT_EQ(reader.is_body_too_long(), is_too_long) << length;
    }
}

TEST(RequestReader, RefusesMalformedRequests) {
    for (const std::string& bytes : {
             std::string("nonsense\r\n\r\n"),
             std::string("GET\r\n\r\n"),
             std::string("GET /\r\n\r\n"),
             std::string("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
             std::string("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
             std::string("GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
             std::string("GET / HTTP/1.1\nHost: a\n\n"),
             std::string("G\x01T / HTTP/1.1\r\nHost: a\r\n\r\n"),
             std::string(33, 'G'),
             std::string("GET / ") + std::string(17, 'H'),
             std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15),  // TLS
             std::string("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n"),
             std::string("GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n"),
             std::string("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"),
             std::string("GET / HTTP/1.1\r\n\r\n"),
             get_with("Host: b\r\n"),
             get_with("no colon\r\n"),
             get_with("Space : 1\r\n"),
             get_with(": 1\r\n"),
             get_with("A: 1\r\n folded\r\n"),
             get_with(" A: 1\r\n"),
             get_with(std::string("A: \0\r\n", 6)),
             get_with("A: \x01\r\n"),
         }) {
        EXPECT_EQ(requests_in({bytes}), "400") << bytes;
    }
}

TEST(RequestReader, RefusesBodiesWithTwoEnds) {
    for (const char* headers : {
             "Content-Length: 1\r\nContent-Length: 2\r\n",
             "Content-Length: 1\r\nContent-Length: 1\r\n",
             "Content-Length: 1, 2\r\n",
             "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
             "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
             "Transfer-Encoding: gzip\r\n",
             "Transfer-Encoding: gzip, chunked\r\n",
             "Transfer-Encoding: chunked, gzip\r\n",
             "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
             "Transfer-Encoding: identity\r\n",
             "Transfer-Encoding: xchunked\r\n",
             "Transfer-Encoding:\r\n",
             "Content-Length: -1\r\n",
             "Content-Length: +1\r\n",
             "Content-Length: 0x1\r\n",
             "Content-Length: 1 1\r\n",
             "Content-Length:\r\n",
             "Content-Length: 18446744073709551616\r\n",
         }) {
        EXPECT_EQ(requests_in({get_with(headers)}), "400") << headers;
    }
    EXPECT_EQ(requests_in({"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"}), "400");
}

TEST(RequestReader, RefusesMalformedChunks) {
    const std::string head = get_with("Transfer-Encoding: chunked\r\n");
    for (const std::string& body :
         {std::string("x\r\n"), std::string("-1\r\na\r\n"), std::string("0x1\r\na\r\n"),
          std::string("1\r\nab\r\n"), std::string("10000000000000000\r\n"),
          std::string("0\r\nContent-Length: 5\r\n\r\n")}) {
        EXPECT_EQ(requests_in({head + body + "\r\n\r\n"}), "400") << body;
    }
    // Without end.
    EXPECT_EQ(requests_in({head + "1;" + std::string(20'000, 'x')}), "400");
    EXPECT_EQ(requests_in({head + "0\r\nA: " + std::string(20'000, 'x')}), "400");
}

TEST(RequestReader, TrailersDoNotBecomeHeaders) {
    RequestReader reader(HttpLimits{});
    std::string received = get_with("Transfer-Encoding: chunked\r\n") + "0\r\nX-Key: k\r\n\r\n";
    ASSERT_EQ(reader.read(received), Result::head);
    ASSERT_EQ(reader.read(received), Result::complete);
    EXPECT_FALSE(reader.request().has_header("x-key"));
}

TEST(RequestReader, KnowsWhenConnectionsClose) {
    for (const auto& [bytes, keeps_alive] :
         {std::pair<std::string, bool>(get_with(""), true),
          {get_with("Connection: close\r\n"), false},
          {get_with("Connection: foo, Close\r\n"), false},
          {"GET / HTTP/1.0\r\n\r\n", false},
          {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false}}) {
        RequestReader reader(HttpLimits{});
        std::string received = bytes;
        ASSERT_EQ(reader.read(received), Result::head);
        EXPECT_EQ(reader.keeps_alive(), keeps_alive) << bytes;
    }
}

TEST(RequestReader, TheAuthorityOfATargetReplacesHost) {
    RequestReader reader(HttpLimits{});
    std::string received = "GET http://b/c HTTP/1.1\r\nHost: a\r\n\r\n";
    ASSERT_EQ(reader.read(received), Result::head);
    EXPECT_EQ(reader.request().header("host"), "b");
    EXPECT_EQ(reader.request().path, "/c");
}

// Random bytes, and requests with damaged bytes, are refused or read, and never more than that.
TEST(RequestReader, SurvivesDamage) {
    const std::string good = get_with("Content-Length: 3\r\n") + "abc" +
                             get_with("Transfer-Encoding: chunked\r\n") + "2\r\nab\r\n0\r\n\r\n";
    std::mt19937 random(7);
    for (int i = 0; i < 5000; ++i) {
        std::string bytes = good;
        const int n_changes = 1 + static_cast<int>(random() % 4);
        for (int k = 0; k < n_changes; ++k) {
            const std::size_t at = random() % bytes.size();
            switch (random() % 3) {
                case 0:
                    bytes[at] = static_cast<char>(random());
                    break;
                case 1:
                    bytes.erase(at, 1 + random() % 3);
                    break;
                default:
                    bytes.insert(at, 1, " \r\n:0,;%"[random() % 8]);
            }
        }
        std::vector<std::string> parts{bytes};
        if (i % 2 == 1) {
            const std::size_t middle = random() % bytes.size();
            parts = {bytes.substr(0, middle), bytes.substr(middle)};
        }
        ASSERT_EQ(requests_in({bytes}), requests_in(parts)) << bytes;
    }
}

}  // namespace
}  // namespace knap
