// `knap worker` and --rpc, with real processes on loopback.
#include <optional>
#include <thread>

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/command.h"
#include "support/free_port.h"

namespace knap::worker_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class LocalWorker {
  public:
    LocalWorker() : port_(std::to_string(test::free_port())) {
        process_.emplace(knap_binary(), Words{"worker", "--port", port_, "-t", "1"});
        EXPECT_TRUE(process_->wait_for_output());
    }

    std::string port() const { return port_; }
    std::string address() const { return "127.0.0.1:" + port_; }
    BackgroundProcess& process() { return *process_; }

  private:
    std::string port_;
    std::optional<BackgroundProcess> process_;
};

// A server that is not a worker.
class Listener {
  public:
    Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
        getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
        listen(socket_, 8);
        address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    }
    ~Listener() { close(socket_); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    std::string address() const { return address_; }
    // Sends garbage to the first two clients.
    void talk() const {
        for (int i = 0; i < 2; ++i) {
            const int client = accept(socket_, nullptr, nullptr);
            const std::string answer(64, '\xff');
            [[maybe_unused]] const auto n_sent =
                send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
            shutdown(client, SHUT_WR);
            char ignored[256];
            while (read(client, ignored, sizeof ignored) > 0) {
            }
            close(client);
        }
    }

  private:
    int socket_;
    std::string address_;
};

const Words kPrompt{"-p", "to be or not to be or not to be", "--raw", "--ignore-eos"};

std::string text_of(const Words& flags) {
    const auto result = run_tiny(kPrompt + Words{"-n", "48"} + flags);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.output;
}

// The same, written by plain decoding.
std::string plain_text_of(const Words& flags) {
    return plain_json(kPrompt + Words{"-n", "48"} + flags)["text"].get<std::string>() + "\n";
}

TEST(Workers, AreListedWithTheDevicesOfThisMachine) {
    const LocalWorker first;
    const LocalWorker second;
    const auto result =
        run_knap({"run", "--list-devices", "--rpc", first.address() + "," + second.address()});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr("CPU\t"));
    EXPECT_THAT(result.output, HasSubstr("RPC0\t"));
    EXPECT_THAT(result.output, HasSubstr("RPC1\t"));
    expect_error(run_knap({"run", "--list-devices", "--rpc", "127.0.0.1:1"}), 1, "127.0.0.1:1");
}

TEST(Workers, EveryStrategyWritesTheTextOfPlainDecodingOnTwoWorkers) {
    const LocalWorker first;
    const LocalWorker second;
    const Words rpc{"--rpc", first.address() + "," + second.address()};
    const std::string plain = plain_text_of(rpc);
    EXPECT_GT(plain.size(), 20u);
    EXPECT_EQ(text_of(rpc + Words{"--strategy", "lookup"}), plain);
    EXPECT_EQ(text_of(rpc + Words{"--strategy", "static", "--draft-plan", "m1=skip,a2=skip"}),
              plain);
    EXPECT_EQ(text_of(rpc + Words{"--strategy", "knapspec"}), plain);
}

TEST(Workers, ComputeTheLastLayersAfterTheCpu) {
    const LocalWorker worker;
    const Words rpc{"--rpc", worker.address(), "-ngl", "3"};
    const std::string plain = plain_text_of(rpc);
    EXPECT_GT(plain.size(), 20u);
    EXPECT_EQ(text_of(rpc + Words{"--strategy", "lookup"}), plain);
}

TEST(Workers, AreNotUsedWhenAnotherDeviceComputes) {
    const LocalWorker worker;
    const std::string plain = plain_text_of({});
    EXPECT_EQ(plain_text_of({"--rpc", worker.address(), "--device", "CPU"}), plain);
    EXPECT_EQ(plain_text_of({"--rpc", worker.address(), "-ngl", "0"}), plain);
}

TEST(Workers, PrintTheirAddressInOneLine) {
    LocalWorker worker;
    text_of({"--rpc", worker.address()});
    worker.process().send(SIGINT);
    const auto result = worker.process().finish();
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_THAT(result.output,
                StartsWith("knap: worker listening at " + worker.address() + ": CPU ("));
    EXPECT_EQ(count(result.output, "\n"), 1u) << result.output;
    EXPECT_THAT(result.error, testing::EndsWith("knap: interrupted\n"));
}

TEST(Workers, NeedAFreePort) {
    const LocalWorker worker;
    expect_error(run_knap({"worker", "--port", worker.port()}), 1,
                 "worker " + worker.address() + ": expected an address and a port that are free");
}

TEST(Workers, NeedALocalAddressAndAKnownDevice) {
    const std::string port = std::to_string(test::free_port());
    expect_error(run_knap({"worker", "--port", port, "--host", "localhost"}), 1,
                 "--host: expected an address of this machine in numbers");
    expect_error(run_knap({"worker", "--port", port, "--device", "none"}), 1,
                 "--device: expected one of");
}

TEST(Workers, HelpWarnsAboutNetworks) {
    const auto help = run_knap({"worker", "--help"}).output;
    EXPECT_THAT(help, HasSubstr("Only for loopback and private networks"));
    EXPECT_THAT(help, HasSubstr("no authentication and no encryption"));
}

TEST(Workers, UnreachableWorkerIsAnErrorOfOneLine) {
    const std::string address = "127.0.0.1:" + std::to_string(test::free_port());
    expect_error(run_tiny(kPrompt + Words{"--rpc", address}), 1,
                 "worker " + address + ": expected a knap worker, found none (Connection refused)");
    expect_error(run_tiny(kPrompt + Words{"--rpc", "no-such-host.invalid:50052"}), 1,
                 "expected a knap worker, found none (no such host)");
}

TEST(Workers, InvalidAddressIsWrongUsage) {
    for (const char* address : {"127.0.0.1", ":50052", "a:b", "host:0", "host:65536", "host:1x"}) {
        expect_error(run_tiny(kPrompt + Words{"--rpc", address}), 2, "expected host:port");
    }
    expect_error(run_tiny(kPrompt + Words{"--rpc", ""}), 2,
                 "--rpc: expected a comma-separated list");
}

TEST(Workers, SilentServerIsAnErrorOfOneLine) {
    const Listener listener;
    expect_error(run_tiny(kPrompt + Words{"--rpc", listener.address()}), 1,
                 "worker " + listener.address() + ": expected an answer within 10 s");
}

TEST(Workers, AnotherProgramIsAnErrorOfOneLine) {
    const Listener listener;
    std::thread talker([&] { listener.talk(); });
    expect_error(run_tiny(kPrompt + Words{"--rpc", listener.address()}), 1,
                 "worker " + listener.address() +
                     ": expected a knap worker of this version, found another program");
    talker.join();
}

TEST(Workers, StoppedWorkerEndsTheProgramWithOneLine) {
    for (const bool is_first : {true, false}) {
        LocalWorker stopped;
        const LocalWorker other;
        const std::string list = is_first ? stopped.address() + "," + other.address()
                                          : other.address() + "," + stopped.address();
        BackgroundProcess run(knap_binary(), on_tiny_model("run") + kPrompt +
                                                 Words{"--strategy", "autoregressive", "--rpc",
                                                       list, "--rpc-timeout", "2"});
        ASSERT_TRUE(run.wait_for_output());
        stopped.process().send(SIGSTOP);
        const auto result = run.finish(30);
        EXPECT_FALSE(result.has_timed_out);
        EXPECT_EQ(result.exit_code, 1);
        EXPECT_EQ(result.error, "knap: error: worker " + stopped.address() +
                                    ": expected an answer within 2 s, found none\n");
    }
}

TEST(Workers, TimeoutDoesNotChangeTheText) {
    const LocalWorker worker;
    const Words rpc{"--rpc", worker.address()};
    EXPECT_EQ(plain_text_of(rpc + Words{"--rpc-timeout", "30"}),
              plain_text_of(rpc + Words{"--rpc-timeout", "0"}));
}

TEST(Workers, LostWorkerEndsTheProgramWithOneLine) {
    LocalWorker first;
    LocalWorker second;
    for (LocalWorker* lost : {&second, &first}) {
        LocalWorker other;
        BackgroundProcess run(knap_binary(),
                              on_tiny_model("run") + kPrompt +
                                  Words{"--rpc", lost->address() + "," + other.address()});
        ASSERT_TRUE(run.wait_for_output());
        lost->process().send(SIGKILL);
        const auto result = run.finish(30);
        EXPECT_FALSE(result.has_timed_out);
        EXPECT_EQ(result.exit_code, 1);
        EXPECT_THAT(result.error, StartsWith("knap: error: a worker was lost (" + lost->address()));
        EXPECT_EQ(count(result.error, "\n"), 1u) << result.error;
    }
}

}  // namespace
}  // namespace knap::worker_test
