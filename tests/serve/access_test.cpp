#include "serve/access.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::access_test {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

HttpRequest request(HttpHeaders headers, std::string path = "/v1/models") {
    return {.method = "GET", .path = std::move(path), .headers = std::move(headers)};
}

int status(const Access& access, const HttpRequest& asked) {
    const auto error = access.refuse(asked);
    return error ? error->status : 200;
}

TEST(Access, WithoutKeysEverybodyMayAsk) {
    EXPECT_EQ(status(Access({}), request({})), 200);
}

TEST(Access, KeysComeInThreeWays) {
    const Access access({.keys = {"secret", "other"}});
    EXPECT_EQ(status(access, request({{"authorization", "Bearer secret"}})), 200);
    EXPECT_EQ(status(access, request({{"authorization", "bearer  other"}})), 200);
    EXPECT_EQ(status(access, request({{"x-api-key", "secret"}})), 200);
    EXPECT_EQ(status(access, request({{"authorization", "Basic bWU6c2VjcmV0"}})), 200);
}

TEST(Access, OtherKeysAreRefused) {
    const Access access({.keys = {"secret"}});
    for (const char* value : {"", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets",
                              "Bearer Secret", "secret", "Basic c2VjcmV0", "Basic bWU6"}) {
        const auto error = access.refuse(request({{"authorization", value}}));
        ASSERT_TRUE(error) << value;
        EXPECT_EQ(error->status, 401);
        EXPECT_EQ(error->code, "invalid_api_key");
        EXPECT_THAT(error->headers, Contains(Pair("WWW-Authenticate", "Bearer")));
    }
    EXPECT_EQ(status(access, request({}, "/metrics")), 401);
    EXPECT_EQ(status(access, request({}, "/no/such/path")), 401) << "before routing";
}

TEST(Access, HealthNeedsNoKey) {
    const Access access({.keys = {"secret"}});
    EXPECT_EQ(status(access, request({}, "/health")), 200);
    EXPECT_EQ(status(access, request({}, "/v1/health")), 200);
}

TEST(Access, OnLoopbackAForeignHostIsRefused) {
    const Access access({.host = "127.0.0.1"});
    for (const char* host :
         {"localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.1.2.3", "[::1]:80", "::1"}) {
        EXPECT_EQ(status(access, request({{"host", host}})), 200) << host;
    }
    for (const char* host : {"example.org", "evil.localhost.example.org:80", "192.168.0.1",
                             "localhost.evil", "[::2]:80", "127.0.0.1.evil.org", "127.1:80"}) {
        EXPECT_EQ(status(access, request({{"host", host}})), 403) << host;
    }
    EXPECT_EQ(status(Access({.host = "0.0.0.0"}), request({{"host", "example.org"}})), 200);
}

TEST(Access, OriginsOfThisMachineAndTheNamedOnesMayRead) {
    const Access access({.cors_origins = {"https://example.org"}});
    for (const char* origin :
         {"http://localhost:3000", "https://127.0.0.1", "http://[::1]:5", "https://example.org"}) {
        EXPECT_THAT(access.cors_headers(request({{"origin", origin}})),
                    Contains(Pair("Access-Control-Allow-Origin", origin)));
    }
    for (const char* origin :
         {"https://evil.org", "null", "http://localhost.evil.org", "https://example.org.evil.org",
          "file://", "http://127.0.0.1.evil.org"}) {
        EXPECT_THAT(access.cors_headers(request({{"origin", origin}})),
                    Not(Contains(Key("Access-Control-Allow-Origin"))))
            << origin;
    }
    EXPECT_THAT(access.cors_headers(request({})), Contains(Pair("Vary", "Origin")));
}

TEST(Access, PreflightsAllowOnlyKnownOrigins) {
    const Access access({});
    const HttpResponse known = access.preflight(request({{"origin", "http://localhost"}}));
    EXPECT_EQ(known.status, 204);
    EXPECT_THAT(known.headers, Contains(Key("Access-Control-Allow-Headers")));
    const HttpResponse foreign = access.preflight(request({{"origin", "https://evil.org"}}));
    EXPECT_EQ(foreign.status, 204);
    EXPECT_THAT(foreign.headers, Not(Contains(Key("Access-Control-Allow-Headers"))));
}

}  // namespace
}  // namespace knap::access_test
