// Runs a real process and captures its output, for tests of the command line.
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
    std::string input;  // standard input, closed after this text
    // Added to this process's environment
    std::vector<std::pair<std::string, std::string>> environment;

    // All three streams are one pseudo-terminal, whose text becomes `output`
    bool is_on_terminal = false;
    bool keeps_input_open = false;  // does not close standard input

    // Sent in this order, each after its text has appeared.
    struct Signal {
        int number = 0;
        std::string after;  // text that must have appeared on standard output or error since the
                            // last signal
    };
    std::vector<Signal> signals;
    // Close standard output after reading this many bytes
    std::optional<std::size_t> closes_output_after;

    int timeout_s = 60;  // then kills the process and sets `has_timed_out`
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

// A process that runs beside the test and is killed when the object is destroyed.
class BackgroundProcess {
  public:
    BackgroundProcess(const std::filesystem::path& program, std::vector<std::string> arguments);
    ~BackgroundProcess();
    BackgroundProcess(const BackgroundProcess&) = delete;
    BackgroundProcess& operator=(const BackgroundProcess&) = delete;

    // Waits for standard output. Returns false when the process ends or half a minute passes first.
    bool wait_for_output();
    void send(int signal) const;
    // Waits for the end. Returns all output, before and after.
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
