#include "cli/worker_command.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/flags/flag_group.h"
#include "cli/flags/flags.h"

namespace knap {
namespace {

constexpr int kMaxPort = 65535;

// ggml's server prints to standard output, which therefore goes to /dev/null; our lines go to the
// original standard output.
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
    CLI::App* app = root.add_subcommand(
        "worker", "Lends this machine's devices to knap on another machine (--rpc)");
    FlagGroup group(*app, "Worker");
    group.integer("--port", config.port, {.min = 1, .max = kMaxPort}, "port to listen on");
    group.custom({"--host", "ADDRESS", "numeric address to listen on", config.host},
                 [&](const std::string& text) { config.host = text; });
    group.custom({"--device", "NAME,...", "devices to lend, see `knap run --list-devices`",
                  "the first GPU, else the CPU"},
                 [&](const std::string& text) { config.devices = parse_words("--device", text); });
    group.integer("-t,--threads", config.n_threads, {.min = 0, .max = kMaxThreads},
                  "number of threads; 0: one per available physical core");
    app->footer(
        "Only for loopback and private networks: there is no authentication and no encryption,\n"
        "and anyone who can connect can use the machine. A worker serves one program at a time.\n"
        "Both ends must run the same version of knap. Ctrl-C stops the worker.");
    return app;
}

void run_worker_command(const WorkerConfig& config) {
    const OwnOutput output;
    run_worker(config, [&](const std::string& what) {
        output.write_line(concat("knap: worker listening at ", what));
    });
}

}  // namespace knap
