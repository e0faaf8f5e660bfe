#include "serve/http/uri.h"

#include <gtest/gtest.h>

#include "serve/http/request.h"

namespace knap {
namespace {

TEST(PercentDecoded, ReplacesEscapesOnce) {
    EXPECT_EQ(percent_decoded("a%20b%2Fc%2fd"), "a b/c/d");
    EXPECT_EQ(percent_decoded("%2541"), "%41");
    EXPECT_EQ(percent_decoded("%e2%82%AC"), "\xe2\x82\xac");
    EXPECT_EQ(percent_decoded(""), "");
    EXPECT_EQ(percent_decoded("+"), "+");
}

TEST(PercentDecoded, RefusesBadEscapes) {
    for (const char* text : {"%", "a%", "%4", "a%4", "%g0", "%0g", "%-1", "%+1", "% 1", "%00"}) {
        EXPECT_EQ(percent_decoded(text), std::nullopt) << text;
    }
}

TEST(ParseTarget, SplitsPathAndQuery) {
    const auto target = parse_target("/a%2fb?c=%41?d");
    ASSERT_TRUE(target);
    EXPECT_EQ(target->path, "/a/b");
    EXPECT_EQ(target->query, "c=%41?d");
    EXPECT_EQ(target->authority, "");
    EXPECT_EQ(parse_target("/")->path, "/");
    EXPECT_EQ(parse_target("*")->path, "*");
}

TEST(ParseTarget, TakesTheFormOfProxies) {
    const auto target = parse_target("http://example.org:80/v1/models?x");
    ASSERT_TRUE(target);
    EXPECT_EQ(target->authority, "example.org:80");
    EXPECT_EQ(target->path, "/v1/models");
    EXPECT_EQ(target->query, "x");
    EXPECT_EQ(parse_target("http://example.org")->path, "/");
}

TEST(ParseTarget, RefusesWhatIsNoPath) {
    for (const char* text : {"", "a", "example.org:443", "http://", "http:///a", "/a#b", "/a b",
                             "/a\tb", "/\x80", "/\x7f", "/%zz", "ftp://a/b"}) {
        EXPECT_FALSE(parse_target(text)) << text;
    }
}

TEST(HttpRequest, FindsHeadersAndParameters) {
    const HttpRequest request{.query = "a=1&b=x+y%26z&a=2&c&bad=%zz&%64=e",
                              .headers = {{"accept", "a"}, {"x-empty", ""}, {"accept", "b"}}};
    EXPECT_EQ(request.header("Accept"), "a, b");
    EXPECT_EQ(request.header("missing"), "");
    EXPECT_TRUE(request.has_header("X-Empty"));
    EXPECT_FALSE(request.has_header("missing"));
    EXPECT_EQ(request.query_value("a"), "1");
    EXPECT_EQ(request.query_value("b"), "x y&z");
    EXPECT_EQ(request.query_value("c"), "");
    EXPECT_EQ(request.query_value("bad"), "");
    EXPECT_EQ(request.query_value("d"), "e");
    EXPECT_EQ(request.query_value("e"), "");
}

}  // namespace
}  // namespace knap
