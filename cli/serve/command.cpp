#include "cli/serve/command.h"

#include <algorithm>
#include <csignal>
#include <iostream>
#include <optional>
#include <thread>

#include <malloc.h>
#include <poll.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text_file.h"
#include "cli/exit_code.h"
#include "cli/flags/flag_group.h"
#include "cli/interrupt.h"
#include "cli/load.h"
#include "cli/serve/idle_work.h"

namespace knap {
namespace {

constexpr int kMaxPort = 65535;
constexpr int kMaxQueue = 100'000;
constexpr int kMaxMemory = 1 << 20;
constexpr int kMaxTimeout = 24 * 3600;
constexpr float kTemperature = 0.8f;

std::string parse_text(std::string_view flag, std::string_view kind, const std::string& text) {
    if (text.empty()) {
        fail_usage(flag, ": expected ", kind, ", found ''");
    }
    return text;
}

// As browsers send them: a scheme, a host, perhaps a port, and nothing after it. Anything else
// would never be equal to what they send.
std::vector<std::string> parse_origins(const std::string& text) {
    std::vector<std::string> origins = parse_words("--cors-origins", text);
    for (const std::string& origin : origins) {
        const std::size_t at = origin.find("://");
        if (at == 0 || at == origin.npos || at + 3 == origin.size() ||
            origin.find_first_of("/*?# ", at + 3) != origin.npos) {
            fail_usage("--cors-origins: expected origins such as https://example.org, found '",
                       origin, "'");
        }
    }
    return origins;
}

void add_server_flags(CLI::App& app, ServeArgs& args) {
    FlagGroup group(app, "Server");
    HttpConfig& http = args.server.http;
    AccessConfig& access = args.server.access;
    ServiceConfig& service = args.service;
    group.custom({"--host", "ADDRESS",
                  "address to listen on; others than this machine's need a key", http.host},
                 [&](const std::string& text) {
                     http.host = parse_text("--host", "an address or a name", text);
                 });
    group.integer("--port", http.port, {.min = 0, .max = kMaxPort},
                  "port to listen on; 0: any free one");
    group.integer("--parallel", service.n_sessions, {.min = 1, .max = kMaxParallel},
                  "conversations to serve at once");
    group.integer("--queue", service.n_queue, {.min = 0, .max = kMaxQueue},
                  "answers that may wait; more are refused with 429");
    group.integer("--cache-rows", args.n_cache_rows, {.min = 0},
                  "rows of the cache for all conversations; 0: a context for each");
    group.integer(
        "--answer-memory", service.n_memory_tokens, {.min = 0, .max = kMaxMemory},
        "tokens of earlier answers that drafts may be copied from, for each key; 0: none");
    group.integer("--timeout", args.timeout_s, {.min = 1, .max = kMaxTimeout},
                  "seconds after which an answer ends");
    group.custom(
        {"-a,--alias", "NAME", "name of the model in answers", "the file's"},
        [&](const std::string& text) { service.alias = parse_text("--alias", "a name", text); });
    group.toggle("--strict-model", service.is_strict_model,
                 "refuse requests that name another model");
    group.custom({"--api-key", "KEY", "key that clients must send; repeatable", "$KNAP_API_KEY"},
                 [&](const std::string& text) {
                     access.keys.push_back(parse_text("--api-key", "a key", text));
                 });
    group.custom({"--api-key-file", "FILE", "file with a key in every line", "none"},
                 [&](const std::string& text) {
                     args.key_files.push_back(parse_path("--api-key-file", text));
                 });
    group.toggle("--no-auth", args.needs_no_key,
                 "serve an address that others can reach without a key");
    group.custom({"--cors-origins", "ORIGIN,...",
                  "web pages of other machines that may ask, such as https://example.org", "none"},
                 [&](const std::string& text) { access.cors_origins = parse_origins(text); });
    group.custom({"--chat-template-file", "FILE", "chat template as Jinja text", "the model's own"},
                 [&](const std::string& text) {
                     args.template_file = parse_path("--chat-template-file", text);
                 });
    group.toggle("--no-slots", args.hides_slots, "do not answer GET /slots");
    group.toggle("--no-metrics", args.hides_metrics, "do not answer GET /metrics");
}

// A key in every line; '#' begins a comment.
void read_keys(const std::filesystem::path& path, std::vector<std::string>& keys) {
    std::size_t n_found = 0;
    const std::string text = read_text_file(path, "--api-key-file");
    for (std::string_view line : split(text, '\n')) {
        const std::size_t begin = line.find_first_not_of(" \t\r");
        if (begin == line.npos || line[begin] == '#') {
            continue;
        }
        keys.emplace_back(line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1));
        ++n_found;
    }
    if (n_found == 0) {
        fail("--api-key-file: expected at least one key, found none in ", path.string());
    }
}

// Checked here: an empty text would stand for the model's own template, and a word for one by name.
std::string read_template(const std::filesystem::path& path) {
    std::string text = read_text_file(path, "--chat-template-file");
    if (text.find("{{") == text.npos && text.find("{%") == text.npos) {
        fail("--chat-template-file ", path.string(), ": expected a chat template in Jinja, found ",
             text.empty() ? "an empty file" : "a text without {{ and {%");
    }
    return text;
}

void check_exposure(const ServeArgs& args) {
    if (!is_loopback(args.server.http.host) && args.server.access.keys.empty() &&
        !args.needs_no_key) {
        fail_usage(
            "--host: expected --api-key or --api-key-file for an address that others can "
            "reach (or --no-auth), found neither for ",
            args.server.http.host);
    }
}

// The configuration of the server, from flags, files and the environment.
ServerConfig server_config(const CLI::App& app, ServeArgs& args, const Environment& environment) {
    ServerConfig& config = args.server;
    if (app.count("--host") == 0 && !environment.host.empty()) {
        config.http.host = environment.host;
    }
    if (app.count("--port") == 0 && !environment.port.empty()) {
        config.http.port =
            parse_integer("$KNAP_PORT", environment.port, {.min = 0, .max = kMaxPort});
    }
    for (const std::filesystem::path& path : args.key_files) {
        read_keys(path, config.access.keys);
    }
    if (config.access.keys.empty() && !environment.api_key.empty()) {
        config.access.keys.push_back(environment.api_key);
    }
    config.access.host = config.http.host;
    check_exposure(args);
    args.service.timeout = std::chrono::seconds(args.timeout_s);
    args.service.has_slots = !args.hides_slots;
    args.service.has_metrics = !args.hides_metrics;
    args.service.chat_template = args.template_file.empty() ? args.settings.chat_template
                                                            : read_template(args.template_file);
    args.service.defaults.has_seed =
        app.count("--seed") > 0 && app.get_option("--seed")->results().back() != "-1";
    return config;
}

// By default glibc raises both limits after a large block is freed, up to 32 and 64 MiB, for each
// thread: a few bodies of 30 MB then cost hundreds of megabytes for ever. No pass allocates blocks
// of this size, so decoding is not slowed down.
void return_freed_memory() {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 8 << 20);
#endif
}

void print_ready(const Server& server) {
    std::cout << concat("knap: serving ", server.service()->model_name, " at ", server.address(),
                        "\nknap: try it: curl ", server.address(),
                        "/v1/chat/completions -H 'Content-Type: application/json' -d "
                        "'{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'\n")
              << std::flush;
}

// Runs the I/O loop of a server while the object lives.
class LoopThread {
  public:
    explicit LoopThread(Server& server) : server_(server), thread_([&server] { server.run(); }) {}
    ~LoopThread() {
        server_.stop();
        thread_.join();
    }
    LoopThread(const LoopThread&) = delete;
    LoopThread& operator=(const LoopThread&) = delete;

  private:
    Server& server_;
    std::thread thread_;
};

void wait_for_signal(const InterruptScope& scope) {
    pollfd waiting{.fd = scope.descriptor(), .events = POLLIN, .revents = 0};
    while (scope.signal() == 0) {
        poll(&waiting, 1, /*timeout=*/-1);
    }
}

}  // namespace

CLI::App* add_serve(CLI::App& root, ServeArgs& args) {
    CLI::App* app = root.add_subcommand("serve", "Serves a model to OpenAI's clients over HTTP");
    Settings& settings = args.settings;
    settings.generate.sampling.temperature = kTemperature;
    add_server_flags(*app, args);
    add_idle_work_flag(*app, settings, "Server",
                       "measure costs and search for plans while nobody asks");
    add_model_flags(*app, settings);
    add_runtime_flags(*app, settings);
    add_chat_template_flag(*app, settings);
    add_generation_flags(*app, settings);
    add_sampling_flags(*app, settings);
    add_speculation_flags(*app, settings);
    add_common_flags(*app, settings);
    app->footer(
        concat("Flags for generation, sampling and speculation are the defaults of "
               "requests.\nCtrl-C or SIGTERM lets answers under way finish; a second one "
               "ends at once.\n\n",
               describe_strategies()));
    return app;
}

int run_serve(const CLI::App& app, ServeArgs args, const Environment& environment) {
    return_freed_memory();
    const ServerConfig config = server_config(app, args, environment);
    RuntimeConfig runtime = args.settings.runtime;
    runtime.n_parallel = args.service.n_sessions;
    runtime.n_cache_rows = args.n_cache_rows;
    // Before the scope, in which a signal only asks the server to stop.
    runtime.model_path = find_model(runtime, args.settings.hub, environment);

    const InterruptScope scope;
    std::optional<Engine> engine;
    Server server(config);
    {
        const LoopThread loop(server);
        engine.emplace(load_engine(runtime, args.settings.hub, environment));
        args.service.defaults.options = generate_options(*engine, args.settings);
        args.service.searches_when_idle = args.settings.works_when_idle;
        if (args.settings.works_when_idle && runtime.profile == "auto") {
            args.service.idle_work = idle_work(*engine);
        }
        server.serve(*engine, args.service);
        print_ready(server);
        wait_for_signal(scope);
        log_info("stopping: answers under way have ", config.grace.count(), " s");
    }
    return scope.signal() == SIGINT ? kExitInterrupted : kExitDone;
}

}  // namespace knap
