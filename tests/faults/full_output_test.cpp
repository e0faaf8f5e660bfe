// Standard output and files that nothing can be written to, for every command.
#include "cli/command.h"
#include "support/bench_fixture.h"

namespace knap::full_output_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

// knap with these words, started by a shell that does something with its streams or its limits.
ProcessResult run_in_shell(const std::string& before,
                           const Words& words,
                           const std::string& after = "") {
    ProcessRequest request;
    request.arguments =
        Words{"-c", before + " exec \"$0\" \"$@\" " + after, knap_binary().string()} + words;
    request.environment = {{"KNAP_CACHE_DIR", (temporary_folder() / "full_output").string()}};
    request.input = "hello\n";
    return run_process("/bin/sh", request);
}

std::string prompts() {
    return write_text("prompts.jsonl", "{\"prompt\": \"flint and chert\"}\n").string();
}
std::string results() {
    return write_text("bench.json", bench_fixture().dump()).string();
}

// Every command that writes to standard output, with and without --json.
std::vector<Words> writers() {
    const Words search{"-c", "256", "--method", "layerskip", "--data",    prompts(),
                       "-n", "2",   "--exits",  "2",         "--lengths", "2"};
    const Words bench{"-c", "256", "-n", "2", "-d", "8", "--strategies", "lookup"};
    return {{"--help"},
            {"--version"},
            {"run", "--help"},
            {"run", "--list-devices"},
            {"make-model", "--shape", "tiny-llama", "-o", fresh_file("full_output.gguf")},
            {"report", results(), "-o", fresh_file("full_output.html")},
            {"info", "-m", tiny_model().string()},
            {"info", "-m", tiny_model().string(), "--json"},
            on_tiny_model("run") + Words{"-p", "a", "-n", "2"},
            on_tiny_model("run") + Words{"-p", "a", "-n", "2", "--json"},
            on_tiny_model("chat") + Words{"-n", "2"},
            on_tiny_model("explain") + Words{"-c", "256", "-p", "a", "-n", "2"},
            on_tiny_model("check") + Words{"-c", "256", "--data", prompts(), "-n", "2"},
            on_tiny_model("search") + search,
            on_tiny_model("bench") + bench,
            on_tiny_model("bench") + bench + Words{"--json"}};
}

TEST(FullOutput, IsAnErrorOfEveryCommand) {
    for (const Words& words : writers()) {
        SCOPED_TRACE(testing::PrintToString(words));
        expect_error(run_in_shell("", words, "> /dev/full"), 1,
                     "cannot write to standard output: No space left on device");
    }
}

// A file that is opened later must not become standard output.
TEST(ClosedOutput, IsAnErrorThatSaysSo) {
    for (const Words& words : {Words{"--version"},
                               {"info", "-m", tiny_model().string()},
                               on_tiny_model("run") + Words{"-p", "a", "-n", "2"}}) {
        SCOPED_TRACE(testing::PrintToString(words));
        expect_error(run_in_shell("", words, ">&-"), 1,
                     "cannot write to standard output: Bad file descriptor");
    }
}

TEST(ClosedInput, IsAnErrorOfACommandThatReadsIt) {
    expect_error(run_in_shell("", on_tiny_model("run") + Words{"-f", "-"}, "<&-"), 1, "prompt");
    EXPECT_EQ(run_in_shell("", on_tiny_model("run") + Words{"-p", "a", "-n", "2"}, "<&-").exit_code,
              0);
}

TEST(ClosedErrorOutput, DisturbsNoCommand) {
    const auto result =
        run_in_shell("", on_tiny_model("run") + Words{"-p", "a", "-n", "2"}, "2>&-");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(run_tiny({"-p", "a", "-n", "2"}).output, result.output);
}

// The largest size of a file, in blocks of 512 bytes, is a signal for programs that know no better.
class LargestFileOf : public testing::TestWithParam<int> {
  protected:
    static void expect_no_file(const Words& words, const std::string& path, const char* error) {
        write_text(fs::path(path).filename().string(), "old");
        const auto result = run_in_shell("ulimit -f " + std::to_string(GetParam()) + ";", words);
        EXPECT_EQ(result.exit_code, 1) << result.error;
        EXPECT_THAT(result.error, StartsWith("knap: error: "));
        EXPECT_THAT(result.error, HasSubstr(error));
        EXPECT_EQ(count(result.error, "\n"), 1u) << result.error;
        EXPECT_EQ(read_text(path), "old");
        for (const auto& entry : fs::directory_iterator(temporary_folder())) {
            EXPECT_NE(entry.path().extension(), ".partial") << entry.path();
        }
    }
};

TEST_P(LargestFileOf, AModel) {
    const std::string path = (temporary_folder() / "large.gguf").string();
    expect_no_file({"make-model", "--shape", "tiny-llama", "-o", path}, path, "File too large");
}

// Its pictures are drawn to files without names.
TEST_P(LargestFileOf, AReport) {
    const std::string path = (temporary_folder() / "large.html").string();
    expect_no_file({"report", results(), "-o", path}, path, "");
}

INSTANTIATE_TEST_SUITE_P(Blocks, LargestFileOf, testing::Values(0, 1, 4, 10, 16));

// gnuplot does not say that it could not write its picture, to a file without a name.
TEST(LargestFile, OfAPictureIsNoticed) {
    const std::string path = write_text("large.svg", "old").string();
    const auto result = run_in_shell(
        "ulimit -f 10;", on_tiny_model("explain") + Words{"-c", "256", "-p", "a", "-n", "2",
                                                          "--memory", "off", "-o", path});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.error,
                HasSubstr("gnuplot: expected a picture that ends in </svg>, found 5120"));
    EXPECT_EQ(read_text(path), "old");
}

// Places where no file can be, for every command that writes one.
TEST(ImpossiblePlace, IsAnErrorThatNamesIt) {
    const std::string file = write_text("a_file", "x").string();
    const std::string folder = temporary_folder().string();
    for (const auto& [place, why] : {std::pair<std::string, std::string>{file, "does not exist"},
                                     {folder + "/missing", "does not exist"},
                                     {"/proc", "free bytes in /proc, found 0"}}) {
        const auto at = [&](const char* name) { return place + "/" + name; };
        for (const Words& words :
             {Words{"make-model", "--shape", "tiny-llama", "-o", at("x.gguf")},
              Words{"report", results(), "-o", at("x.html")},
              on_tiny_model("explain") +
                  Words{"-c", "256", "-p", "a", "-n", "2", "-o", at("x.svg")},
              on_tiny_model("search") + Words{"-c", "256", "--method", "layerskip", "--data",
                                              prompts(), "-n", "2", "--exits", "2", "--lengths",
                                              "2", "-o", at("x.json")},
              on_tiny_model("bench") + Words{"-c", "256", "-n", "2", "-d", "8", "--strategies",
                                             "lookup", "-o", at("x.json")},
              on_tiny_model("run") +
                  Words{"-p", "a", "-n", "2", "--prompt-cache", at("x.cache")}}) {
            SCOPED_TRACE(testing::PrintToString(words));
            const auto result = run_in_shell("", words);
            EXPECT_EQ(result.exit_code, 1) << result.error;
            EXPECT_EQ(count(result.error, "knap: error: "), 1u) << result.error;
            EXPECT_THAT(result.error, HasSubstr(at("x")));
            EXPECT_THAT(result.error, HasSubstr(why));
        }
    }
}

// No folder for profiles and what runs learn is no reason to disturb anybody.
TEST(ImpossiblePlace, OfTheCacheDisturbsNoAnswer) {
    const std::string text = run_tiny({"-p", "a", "-n", "2"}).output;
    for (const std::string& cache : {write_text("a_file", "x").string(), std::string("/proc/cache"),
                                     temporary_folder().string() + "/a_file/below"}) {
        ProcessRequest request;
        request.arguments = on_tiny_model("run") + Words{"-p", "a", "-n", "2"};
        request.environment = {{"KNAP_CACHE_DIR", cache}};
        const auto result = run_knap(request);
        EXPECT_EQ(result.exit_code, 0);
        EXPECT_EQ(result.output, text);
        EXPECT_EQ(count(result.error, "\n"), 1u) << result.error;
    }
}

}  // namespace
}  // namespace knap::full_output_test
