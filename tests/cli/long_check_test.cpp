// `knap check --tokens`.
#include <signal.h>

#include "cli/command.h"

namespace knap::long_check_test {
namespace {

using nlohmann::json;

ProcessResult long_check(const Words& flags) {
    return run_knap(Words{"check", "-m", tiny_model("tiny-llama", "Q8_0").string(), "-t", "1", "-c",
                          "256", "-n", "8"} +
                    flags);
}

TEST(LongCheck, ComparesRecordsAndGoesOn) {
    const std::string path = fresh_file("long-check.jsonl");
    const auto first = long_check({"--tokens", "300", "--record", path, "--json"});
    EXPECT_EQ(first.exit_code, 0) << first.output << first.error;
    const json object = json::parse(first.output);
    EXPECT_EQ(object["ok"], true);
    EXPECT_GE(object["all"]["n_tokens"], 300);
    EXPECT_EQ(object["all"]["n_differing"], 0);
    EXPECT_GT(object["all"]["n_drafted"], 0);
    const std::string record = read_text(path);
    const auto same = long_check({"--tokens", "300", "--record", path});
    EXPECT_EQ(same.exit_code, 0) << same.error;
    EXPECT_THAT(same.output,
                testing::HasSubstr("tokens are those of plain decoding, none differs"));
    EXPECT_EQ(read_text(path), record) << "nothing was left to do";
    const auto more = long_check({"--tokens", "500", "--record", path});
    EXPECT_EQ(more.exit_code, 0) << more.error;
    EXPECT_THAT(read_text(path), testing::StartsWith(record));
    EXPECT_GT(read_text(path).size(), record.size());
}

TEST(LongCheck, FailsWhenTheRecordHasADifference) {
    const std::string path = fresh_file("differs.jsonl");
    ASSERT_EQ(long_check({"--tokens", "1", "--record", path}).exit_code, 0);
    std::string text = read_text(path);
    const std::string end = "}],\"flags\"";
    const auto at = text.find(end);
    ASSERT_NE(at, std::string::npos);
    text.insert(at, R"(,"difference":{"position":9,"expected":3,"found":null})");
    const auto changed = write_text("differs-now.jsonl", text);
    const auto result = run_knap({"check", "--record", changed.string()});
    EXPECT_EQ(result.exit_code, 1);
    for (const char* part : {"DIFFERS: case ", "expected token 3, found the end of the text",
                             "  again: ", " -c 256 -t 1 -n 8 --seed 1 --case ",
                             "FAILED: 1 answers differ from plain decoding's\n"}) {
        EXPECT_THAT(result.output, testing::HasSubstr(part));
    }
}

TEST(LongCheck, RunsOneCaseAlone) {
    const auto result = long_check({"--case", "3", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    const auto again = long_check({"--case", "3", "--json"});
    EXPECT_EQ(json::parse(again.output)["all"]["n_tokens"],
              json::parse(result.output)["all"]["n_tokens"]);
}

TEST(LongCheck, CtrlCKeepsTheRecord) {
    const std::string path = fresh_file("interrupted.jsonl");
    ProcessRequest request;
    request.arguments = {"check",    "-m",       tiny_model("tiny-llama", "Q8_0").string(),
                         "-t",       "1",        "-c",
                         "256",      "--tokens", "1000000000",
                         "--record", path};
    request.is_on_terminal = true;  // a progress bar shows that cases have been compared
    request.signals = {{SIGINT, "long check ["}};
    const auto result = run_knap(request);
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_THAT(result.output,
                testing::HasSubstr("knap: the check was interrupted; the same command goes on"));
    EXPECT_EQ(run_knap({"check", "--record", path}).exit_code, 0);
    EXPECT_THAT(read_text(path), testing::EndsWith("}\n"));
}

TEST(LongCheck, RefusesWhatItCannotDo) {
    expect_error(long_check({"--tokens", "10", "-n", "256"}), 1,
                 "-n: expected fewer tokens than the context of 256");
    expect_error(long_check({"--tokens", "10", "--kernels", "ggml", "-fa", "on"}), 1,
                 "expected an engine whose passes of any size");
    expect_error(long_check({"--case", "1", "--record", fresh_file("none.jsonl")}), 2,
                 "--case: expected no --record");
    const auto path = write_text("no-record.jsonl", "text\n");
    expect_error(long_check({"--tokens", "10", "--record", path.string()}), 1,
                 "no-record.jsonl:1: expected a JSON object, found damaged text");
}

}  // namespace
}  // namespace knap::long_check_test
