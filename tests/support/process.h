// Runs a real process and keeps what it said: for tests of the command line.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace knap {

struct ProcessRequest {
    std::vector<std::string> arguments;
    std::string input;  // standard input; it ends after this text
    // Set in addition to this process's own
    std::vector<std::pair<std::string, std::string>> environment;

    // All three streams are one pseudo-terminal; what it shows is `output`
    bool is_on_terminal = false;
    bool keeps_input_open = false;  // standard input does not end by itself

    // Sent in this order, each once its text has come out.
    struct Signal {
        int number = 0;
        std::string after;  // text that must have appeared on standard output or error since the
                            // last signal
    };
    std::vector<Signal> signals;
    // Bytes of standard output read before it is closed
    std::optional<std::size_t> closes_output_after;

    int timeout_s = 60;  // then the process is killed and `has_timed_out` set
};

struct ProcessResult {
    int exit_code = -1;  // -1: ended by a signal
    int signal = 0;
    std::string output;
    std::string error;
    bool has_timed_out = false;
};

// Throws std::runtime_error when the process cannot be started.
ProcessResult run_process(const std::filesystem::path& program, const ProcessRequest& request);

// A process that runs beside the test. It is killed with the object.
class BackgroundProcess {
  public:
    BackgroundProcess(const std::filesystem::path& program, std::vector<std::string> arguments);
    ~BackgroundProcess();
    BackgroundProcess(const BackgroundProcess&) = delete;
    BackgroundProcess& operator=(const BackgroundProcess&) = delete;

    // Until something came out on standard output; false: it ended, or half a minute went by before
    // that.
    bool wait_for_output();
    void send(int signal) const;
    // Waits for its end; what came out before and after.
    ProcessResult finish(int timeout_s = 60);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// The knap binary of this build.
std::filesystem::path knap_binary();
ProcessResult run_knap(const ProcessRequest& request);
ProcessResult run_knap(std::vector<std::string> arguments);

}  // namespace knap
