// `knap serve` that cannot start says why in one line. tests/serve/clients has the server at work.
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "support/http_rig.h"

namespace knap::serve_test {
namespace {

TEST(Serve, BadFlagsAreRefusedInOneLine) {
    const std::vector<std::pair<Words, std::string>> misuses{
        {{"--alias", ""}, "--alias: expected a name, found ''"},
        {{"-a", ""}, "--alias: expected a name, found ''"},
        {{"-to", "0"}, "--timeout: expected a whole number from 1 to 86400, found '0'"},
        {{"--api-key", ""}, "--api-key: expected a key, found ''"},
        {{"--host", ""}, "--host: expected an address or a name, found ''"},
        {{"--port", "65536"}, "--port: expected a whole number from 0 to 65535, found '65536'"},
        {{"--host", "0.0.0.0"}, "--host: expected --api-key or --api-key-file"},
        {{"--cors-origins", "*"}, "expected origins such as https://example.org, found '*'"},
        {{"--cors-origins", "https://*"}, "found 'https://*'"},
        {{"--cors-origins", "https://a.example,https://b.example/"}, "found 'https://b.example/'"},
        {{"--cors-origins", "example.org"}, "found 'example.org'"},
        {{"--cors-origins", "https://"}, "found 'https://'"},
    };
    for (const auto& [flags, message] : misuses) {
        SCOPED_TRACE(message);
        expect_error(run_knap({.arguments = Words{"serve"} + flags,
                               .environment = {{"KNAP_API_KEY", ""}, {"KNAP_HOST", ""}}}),
                     2, message);
    }
}

TEST(Serve, APortInUseIsNamed) {
    test::HttpRig other;
    const std::string port = std::to_string(other.server.port());
    expect_error(run_knap({"serve", "--host", "127.0.0.1", "--port", port}), 1,
                 "cannot listen on 127.0.0.1 port " + port + ": the address is already in use");
    expect_error(run_knap({"serve", "--port", "0", "--host", "no-such-host.invalid", "--no-auth"}),
                 1, "cannot listen on host 'no-such-host.invalid'");
}

TEST(Serve, FilesThatCannotBeReadAreNamed) {
    const std::string none = fresh_file("no-such-file");
    for (const std::string flag : {"--api-key-file", "--chat-template-file"}) {
        expect_error(run_knap({"serve", "--port", "0", flag, none}), 1, none);
    }
    const std::string empty = write_text("no-keys", "# none\n").string();
    expect_error(run_knap({"serve", "--port", "0", "--api-key-file", empty}), 1,
                 "expected at least one key, found none in " + empty);
}

TEST(Serve, AFileWithoutATemplateIsRefused) {
    const std::string blank = write_text("blank.jinja", "").string();
    expect_error(run_knap({"serve", "--port", "0", "--chat-template-file", blank}), 1,
                 blank + ": expected a chat template in Jinja, found an empty file");
    const std::string name = write_text("name.jinja", "chatml").string();
    expect_error(run_knap({"serve", "--port", "0", "--chat-template-file", name}), 1,
                 name + ": expected a chat template in Jinja, found a text without {{ and {%");
}

}  // namespace
}  // namespace knap::serve_test
