#include "serve/http/response_text.h"

#include <gtest/gtest.h>

#include "serve/http/request_id.h"

namespace knap {
namespace {

TEST(HeadText, HasTheHeadersOfTheServer) {
    EXPECT_EQ(head_text({.status = 404, .content_type = "text/plain", .body = "none"},
                        {.keeps_alive = false, .request_id = "r1"}),
              "HTTP/1.1 404 Not Found\r\nServer: knap\r\nx-request-id: r1\r\nConnection: close\r\n"
              "Content-Type: text/plain\r\nContent-Length: 4\r\n\r\n");
}

TEST(HeadText, ChunksHaveNoLength) {
    const std::string text = head_text({}, {.framing = BodyFraming::chunks});
    EXPECT_NE(text.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
    EXPECT_EQ(text.find("Content-Length"), std::string::npos);
}

TEST(HeadText, StatusWithoutBodyHasNoLength) {
    for (const int status : {204, 304}) {
        const std::string text = head_text({.status = status, .body = "x"}, {});
        EXPECT_EQ(text.find("Content-"), std::string::npos) << text;
    }
}

TEST(HeadText, NothingAddsALine) {
    const std::string text = head_text({.content_type = "a\r\nX-Evil: 1",
                                        .headers = {{"X-One", "a\r\nX-Evil: 2\r\n\r\nbody"},
                                                    {"X-Evil: 3\r\nY", "b"},
                                                    {"X Evil", "c"},
                                                    {"", "d"},
                                                    {"X-Two", std::string("e\0f\ng", 5)}}},
                                       {.request_id = "r\nX-Evil: 4"});
    EXPECT_EQ(text.find("\nX-Evil"), std::string::npos) << text;
    EXPECT_NE(text.find("X-One: a  X-Evil: 2    body\r\n"), std::string::npos) << text;
    EXPECT_NE(text.find("X-Two: e f g\r\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("\r\n\r\n"), text.size() - 4);
}

TEST(HeadText, HeadersOfTheServerCannotBeSetTwice) {
    const HttpResponse response{.headers = {{"content-LENGTH", "7"},
                                            {"Connection", "7"},
                                            {"Server", "7"},
                                            {"X-Request-ID", "7"},
                                            {"Transfer-Encoding", "7"},
                                            {"Content-Type", "7"}}};
    EXPECT_EQ(head_text(response, {}).find("7"), std::string::npos);
}

TEST(ChunkText, StatesItsSizeInHexadecimal) {
    EXPECT_EQ(chunk_text("abc"), "3\r\nabc\r\n");
    EXPECT_EQ(chunk_text(std::string(26, 'x')), "1a\r\n" + std::string(26, 'x') + "\r\n");
}

TEST(RequestId, IsTheClientsIfPrintable) {
    EXPECT_EQ(request_id("my id~1"), "my id~1");
    EXPECT_EQ(request_id(std::string(128, 'x')), std::string(128, 'x'));
}

TEST(RequestId, IsMadeOtherwise) {
    for (const std::string& id : {std::string(), std::string(129, 'x'), std::string("a\tb"),
                                  std::string("a\xc3\xa4"), std::string("a\x7f")}) {
        const std::string made = request_id(id);
        EXPECT_NE(made, id);
        EXPECT_EQ(made.size(), 20u) << made;
        EXPECT_NE(made, request_id(id));
    }
}

}  // namespace
}  // namespace knap
