#include "cli/worker_command.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/flags/flag_group.h"
#include "cli/flags/flags.h"

namespace knap {
namespace {

constexpr int kMaxPort = 65535;

// ggml's server talks on standard output; what we say goes where that went before.
class OwnOutput {
  public:
    OwnOutput() : output_(dup(STDOUT_FILENO)) {
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nowhere, STDOUT_FILENO);
        close(nowhere);
    }
    ~OwnOutput() {
        dup2(output_, STDOUT_FILENO);
        close(output_);
    }
    OwnOutput(const OwnOutput&) = delete;
    OwnOutput& operator=(const OwnOutput&) = delete;

    void write_line(const std::string& line) const {
        const std::string text = line + "\n";
        [[maybe_unused]] const auto n_written = write(output_, text.data(), text.size());
    }

  private:
    int output_;
};

}  // namespace

CLI::App* add_worker(CLI::App& root, WorkerConfig& config) {
    CLI::App* app =
        root.add_subcommand("worker", "Lends this machine's devices to --rpc on another one");
    FlagGroup group(*app, "Worker");
    group.integer("--port", config.port, {.min = 1, .max = kMaxPort}, "port to listen on");
    group.custom({"--host", "ADDRESS", "address to listen on, in numbers", config.host},
                 [&](const std::string& text) { config.host = text; });
    group.custom({"--device", "NAME,...", "what is lent: see knap run --list-devices",
                  "the first GPU, else the CPU"},
                 [&](const std::string& text) { config.devices = parse_words("--device", text); });
    group.integer("-t,--threads", config.n_threads, {.min = 0, .max = kMaxThreads},
                  "threads; 0: the physical cores available");
    app->footer(
        "For loopback and private networks alone: there is no authentication and no encryption,\n"
        "and whoever can connect can use the machine. One program is served at a time; both ends\n"
        "run the same version of knap. Ctrl-C ends it.");
    return app;
}

void run_worker_command(const WorkerConfig& config) {
    const OwnOutput output;
    run_worker(config, [&](const std::string& what) {
        output.write_line(concat("knap: worker listening at ", what));
    });
}

}  // namespace knap
