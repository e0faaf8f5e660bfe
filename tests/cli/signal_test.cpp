// Ctrl-C and SIGTERM.
#include <signal.h>

#include "cli/command.h"

namespace knap::signal_test {
namespace {

// A model that takes seconds to fill its context, so that a signal arrives while it generates.
std::string slow_model() {
    const auto path = temporary_folder() / "slow.gguf";
    if (!std::filesystem::exists(path)) {
        const auto result = run_knap({"make-model", "--shape", "smollm2-135m", "--layers", "4",
                                      "--type", "Q4_0", "-o", path.string()});
        EXPECT_EQ(result.exit_code, 0) << result.error;
    }
    return path.string();
}

ProcessRequest endless_run() {
    ProcessRequest request;
    request.arguments = {"run", "-m", slow_model(), "-t", "1", "-p", "hello", "--ignore-eos"};
    return request;
}

class Signal : public testing::TestWithParam<int> {};

TEST_P(Signal, CancelsTheRunAndKeepsItsText) {
    ProcessRequest request = endless_run();
    request.signals = {{GetParam(), " "}};
    const auto result = run_knap(request);
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_FALSE(result.output.empty());
    EXPECT_TRUE(result.output.ends_with('\n'));
    EXPECT_THAT(result.error, testing::MatchesRegex("knap: .* prompt tokens .* generated .*\n"));
}

INSTANTIATE_TEST_SUITE_P(Numbers, Signal, testing::Values(SIGINT, SIGTERM));

TEST(Signals, CancelledRunStillPrintsItsObject) {
    ProcessRequest request = endless_run();
    request.arguments.push_back("--json");
    request.is_on_terminal = true;  // a progress bar shows that the request has begun
    request.signals = {{SIGINT, "prompt ["}};
    const auto result = run_knap(request);
    EXPECT_EQ(result.exit_code, 130);
    const auto begin = result.output.find('{');
    ASSERT_NE(begin, std::string::npos) << result.output;
    const auto object = nlohmann::json::parse(result.output.substr(begin));
    EXPECT_EQ(object["stop"], "cancelled");
    EXPECT_EQ(object["tokens"].size(), object["n_generated"]);
}

TEST(Signals, CancelledModelLeavesNoFile) {
    const auto folder = temporary_folder() / "cancelled_model";
    std::filesystem::create_directory(folder);
    ProcessRequest request;
    request.arguments = {"make-model", "--shape", "smollm2-135m", "-o", folder / "x.gguf"};
    request.is_on_terminal = true;
    request.signals = {{SIGINT, "write ["}};
    const auto result = run_knap(request);
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_THAT(result.output, testing::EndsWith("knap: interrupted, no model is written\r\n"));
    EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(Signals, EndAChatThatWaitsOnAPipe) {
    ProcessRequest request;
    request.arguments = on_tiny_model("chat") + Words{"-v"};
    request.keeps_input_open = true;
    request.signals = {{SIGINT, "loaded"}};
    const auto result = run_knap(request);
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_FALSE(result.has_timed_out);
}

TEST(Signals, CtrlCStopsAnAnswerAndKeepsTheChat) {
    ProcessRequest request;
    request.arguments = {"chat", "-m", slow_model(), "-t", "1", "--ignore-eos"};
    request.is_on_terminal = true;
    request.input = "hello\n/stats\n\x04";  // the last is Ctrl-D
    request.signals = {{SIGINT, "prompt ["}};
    const auto result = run_knap(request);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, testing::HasSubstr("last answer  "));
}

TEST(Signals, CtrlCAtAChatPromptTellsHowToQuit) {
    ProcessRequest request;
    request.arguments = on_tiny_model("chat");
    request.is_on_terminal = true;
    request.signals = {{SIGINT, "> "}, {SIGTERM, "Type /exit or Ctrl-D to quit."}};
    const auto result = run_knap(request);
    EXPECT_EQ(result.exit_code, 130);  // by the SIGTERM
    EXPECT_FALSE(result.has_timed_out);
}

TEST(Signals, CtrlCWorksAfterAChatHasUsedTheTimeAtItsPrompt) {
    ProcessRequest request;
    request.arguments =
        on_tiny_model("chat") + Words{"-v", "-n", "40", "--ignore-eos", "--profile", "none"};
    request.is_on_terminal = true;
    request.input = "hello\n";
    request.signals = {{SIGINT, "nothing is left to do"}, {SIGTERM, "Type /exit"}};
    const auto result = run_knap(request);
    EXPECT_EQ(result.exit_code, 130);  // by the SIGTERM
    EXPECT_FALSE(result.has_timed_out) << result.output;
}

}  // namespace
}  // namespace knap::signal_test
