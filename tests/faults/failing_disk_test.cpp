// What is left of files when the disk fails, or the process is killed, at any step of writing them:
// an older file of that name is whole until the new one is, no part of a new one stays, and the
// next run works.
#include <cerrno>

#include <signal.h>

#include "cli/command.h"
#include "support/bench_fixture.h"

namespace knap::failing_disk_test {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;

// A call that writes, in the order of calls: "pwrite" and the file.
struct Call {
    std::string name;
    std::string path;
};

// Every test has its own folder, and a disk that fails on request (failing_disk.cpp).
class FailingDisk : public ::testing::Test {
  protected:
    FailingDisk() {
        fs::remove_all(folder_);
        fs::create_directories(folder_);
        fs::remove(log_);
    }
    ~FailingDisk() override { fs::remove_all(folder_); }

    void SetUp() override {
#ifndef KNAP_FAILING_DISK
        GTEST_SKIP() << "sanitizers take the place of the same functions";
#endif
    }

    ProcessResult run(const Words& words,
                      std::vector<std::pair<std::string, std::string>> settings = {}) const {
        ProcessRequest request;
        request.arguments = words;
        request.environment = std::move(settings);
        request.environment.emplace_back("KNAP_CACHE_DIR", cache_.string());
        return run_knap(request);
    }
    // The n-th call, from 1, fails with that error, or the process is killed in its place.
    ProcessResult run_failing(const Words& words, std::size_t n, const std::string& error) const {
#ifdef KNAP_FAILING_DISK
        return run(words, {{"LD_PRELOAD", KNAP_FAILING_DISK},
                           {"FAILING_DISK_FOLDER", folder_.string()},
                           {"FAILING_DISK_LOG", log_.string()},
                           {"FAILING_DISK_CALL", std::to_string(n)},
                           { "FAILING_DISK_ERROR",
                             error }});
#else
        return run(words);
#endif
    }
    // The calls of the last run.
    std::vector<Call> take_calls() const {
        std::vector<Call> calls;
        std::ifstream log(log_);
        for (Call call; log >> call.name >> call.path;) {
            calls.push_back(call);
        }
        log.close();
        fs::remove(log_);
        return calls;
    }
    std::vector<fs::path> partial_files() const {
        std::vector<fs::path> found;
        for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
            if (entry.path().extension() == ".partial") {
                found.push_back(entry.path());
            }
        }
        return found;
    }

    fs::path folder_ = temporary_folder() / "failing_disk";
    fs::path cache_ = folder_ / "cache";
    fs::path log_ = temporary_folder() / "failing_disk.log";
};

bool renames_to(const Call& call, const fs::path& path) {
    return call.name == "rename" && call.path.starts_with(path.string() + ".");
}

std::string last_line(const std::string& text) {
    const auto begin = text.size() < 2 ? text.npos : text.rfind('\n', text.size() - 2);
    return text.substr(begin == text.npos ? 0 : begin + 1);
}

const std::string kFull = std::to_string(ENOSPC);
const std::string kFullText = ": No space left on device\n";

// A command that writes a file, FILE in its words, and the one that wrote the older file.
struct Writer {
    std::string name;
    std::string extension;
    Words words;
    Words before = {};     // none: the older file holds "old"
    std::size_t step = 1;  // every so many calls fail: some commands take longer
};

const std::string kPrompts = "PROMPTS";
const Words kRun{"-n", "2", "--memory", "off", "--prompt-cache", "FILE"};
const Words kSearch{"--method", "layerskip", "--data",    kPrompts, "-n", "4",
                    "--exits",  "1,3",       "--lengths", "2",      "-o", "FILE"};

class EveryStep : public FailingDisk, public testing::WithParamInterface<Writer> {
  protected:
    EveryStep() : file_(folder_ / ("file" + GetParam().extension)) {
        write_text("prompts.jsonl", "{\"prompt\": \"flint and chert\"}\n");
        write_text("bench.json", bench_fixture().dump());
    }

    Words filled_in(Words words) const {
        for (std::string& word : words) {
            word = word == "FILE" ? file_.string() : word;
            word = word == kPrompts ? (temporary_folder() / "prompts.jsonl").string() : word;
            word = word == "MODEL" ? tiny_model().string() : word;
            word = word == "BENCH" ? (temporary_folder() / "bench.json").string() : word;
        }
        return words;
    }
    void make_older_file() const { std::ofstream(file_, std::ios::binary) << older_; }
    void SetUp() override {
        FailingDisk::SetUp();
        if (GetParam().before.empty()) {
            older_ = "old";
        } else {
            ASSERT_EQ(run(filled_in(GetParam().before)).exit_code, 0);
            older_ = read_text(file_);
            ASSERT_FALSE(older_.empty());
        }
        make_older_file();
        const auto result = run_failing(words_, 0, "");
        ASSERT_EQ(result.exit_code, 0) << result.error;
        calls_ = take_calls();
        n_until_new_ = static_cast<std::size_t>(
            std::ranges::find_if(calls_, [&](const Call& c) { return renames_to(c, file_); }) -
            calls_.begin() + 1);
        ASSERT_LE(n_until_new_, calls_.size()) << "the file was not written";
    }
    void expect_file_after(std::size_t n_calls) const {
        const std::string found = read_text(file_);
        if (n_calls < n_until_new_) {
            EXPECT_EQ(found, older_);
        } else {
            EXPECT_NE(found, older_);
        }
    }

    fs::path file_;
    Words words_ = filled_in(GetParam().words);
    std::string older_;
    std::vector<Call> calls_;      // of a run that succeeds
    std::size_t n_until_new_ = 0;  // calls, until the file is the new one
};

// Power loss: what is renamed is on the disk, and so is the new name before the program goes on.
TEST_P(EveryStep, IsOnTheDiskBeforeItHasItsName) {
    int n_renamed = 0;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
        if (calls_[i].name != "rename") {
            continue;
        }
        ++n_renamed;
        ASSERT_GE(i, 2u);
        EXPECT_EQ(calls_[i - 2].name, "fsync");
        EXPECT_EQ(calls_[i - 2].path, calls_[i].path);
        EXPECT_EQ(calls_[i - 1].name, "close");
        ASSERT_LT(i + 2, calls_.size());
        EXPECT_EQ(calls_[i + 1].name, "open");
        EXPECT_EQ(calls_[i + 2].name, "fsync");
        EXPECT_EQ(calls_[i + 2].path, fs::path(calls_[i].path).parent_path());
    }
    EXPECT_GT(n_renamed, 0);
}

TEST_P(EveryStep, FullDiskIsAnErrorThatKeepsTheOlderFile) {
    for (std::size_t n = 1; n <= calls_.size(); n += GetParam().step) {
        SCOPED_TRACE(testing::Message() << n << ": " << calls_[n - 1].name);
        make_older_file();
        const auto result = run_failing(words_, n, kFull);
        expect_file_after(n - 1);
        EXPECT_TRUE(partial_files().empty());
        // A folder need not be readable to be written to, so opening it may fail.
        const bool may_fail = calls_[n - 1].path != folder_ || calls_[n - 1].name == "fsync";
        EXPECT_EQ(result.exit_code, may_fail ? 1 : 0) << result.error;
        if (may_fail) {
            EXPECT_THAT(last_line(result.error), testing::StartsWith("knap: error: "));
            EXPECT_THAT(last_line(result.error), HasSubstr(file_.string()));
            EXPECT_THAT(last_line(result.error), EndsWith(kFullText));
            EXPECT_EQ(count(result.error, "error"), 1u) << result.error;
        }
    }
    make_older_file();
    EXPECT_EQ(run(words_).exit_code, 0);
    expect_file_after(calls_.size());
}

TEST_P(EveryStep, KillingTheProcessLeavesAWholeFile) {
    for (std::size_t n = 1; n <= calls_.size(); n += GetParam().step) {
        SCOPED_TRACE(testing::Message() << n << ": " << calls_[n - 1].name);
        make_older_file();
        EXPECT_EQ(run_failing(words_, n, "kill").signal, SIGKILL);
        expect_file_after(n - 1);
        const auto next = run(words_);
        EXPECT_EQ(next.exit_code, 0) << next.error;
        EXPECT_THAT(next.error, testing::Not(HasSubstr("warning")));
        EXPECT_TRUE(partial_files().empty()) << "of the process that was killed";
    }
}

INSTANTIATE_TEST_SUITE_P(
    Of,
    EveryStep,
    testing::Values(
        Writer{"MakeModel", ".gguf", {"make-model", "--shape", "tiny-llama", "-o", "FILE"}},
        Writer{"PromptCache", ".cache",
               Words{"run", "-m", "MODEL", "-t", "1", "-p", "another prompt"} + kRun,
               Words{"run", "-m", "MODEL", "-t", "1", "-p", "one prompt"} + kRun},
        Writer{"Search", ".json", Words{"search", "-m", "MODEL", "-t", "1", "-c", "256"} + kSearch,
               Words{"search", "-m", "MODEL", "-t", "1", "-c", "256", "--trials", "1"} + kSearch},
        Writer{"Report", ".html", {"report", "BENCH", "-o", "FILE"}, {}, 3},
        Writer{"Bench",
               ".json",
               {"bench", "-m", "MODEL", "-t", "1", "-c", "256", "-n", "2", "-d", "8",
                "--strategies", "lookup", "-o", "FILE"},
               {},
               16}),
    [](const auto& writer) { return writer.param.name; });

// What is learned is worth keeping, but no answer fails because it cannot be kept.
class KeptMemory : public FailingDisk {
  protected:
    static Words words(const std::string& prompt) {
        return on_tiny_model("run") + Words{"-p", prompt, "-n", "8"};
    }
    fs::path file() const {
        for (const auto& entry : fs::directory_iterator(cache_)) {
            if (entry.path().extension() == ".json") {
                return entry.path();
            }
        }
        return {};
    }
    std::vector<Call> calls_of_a_run() const {
        EXPECT_EQ(run(words("one")).exit_code, 0);
        EXPECT_EQ(run_failing(words("one"), 0, "").exit_code, 0);
        return take_calls();
    }
};

TEST_F(KeptMemory, IsOnTheDiskBeforeItHasItsName) {
    const auto calls = calls_of_a_run();
    std::string names;
    for (const Call& call : calls) {
        names += call.name + " ";
    }
    EXPECT_THAT(names, HasSubstr("pwrite fsync close rename open fsync close "));
}

TEST_F(KeptMemory, FullDiskDisturbsNoAnswer) {
    const std::size_t n_calls = calls_of_a_run().size();
    const std::string text = run(words("one")).output;
    ASSERT_GT(n_calls, 6u);
    for (std::size_t n = 1; n <= n_calls; ++n) {
        const auto result = run_failing(words("one"), n, kFull);
        EXPECT_EQ(result.exit_code, 0) << result.error;
        EXPECT_EQ(result.output, text);
        EXPECT_EQ(count(result.error, "\n"), 1u) << "the figures only: " << result.error;
        EXPECT_TRUE(partial_files().empty());
        EXPECT_FALSE(read_json(file().string()).is_discarded());
    }
}

TEST_F(KeptMemory, KillingTheProcessLeavesAWholeFile) {
    const std::size_t n_calls = calls_of_a_run().size();
    for (std::size_t n = 1; n <= n_calls; ++n) {
        const int n_runs_before = read_json(file().string())["runs"];
        EXPECT_EQ(run_failing(words("one"), n, "kill").signal, SIGKILL);
        const auto next = run(words("one"));
        EXPECT_EQ(next.exit_code, 0) << next.error;
        EXPECT_THAT(next.error, testing::Not(HasSubstr("warning")));
        EXPECT_GT(read_json(file().string())["runs"], n_runs_before);
        EXPECT_TRUE(partial_files().empty());
    }
}

// Measuring took a while: its results are shown in any case.
TEST_F(FailingDisk, ProfileThatCannotBeSavedIsShownWithAWarning) {
    const Words words = on_tiny_model("profile") + Words{"-c", "256", "--seconds", "0.1"};
    const auto result = run_failing(words, 3, kFull);
    const auto calls = take_calls();
    ASSERT_GE(calls.size(), 3u);
    EXPECT_EQ(calls[2].name, "ftruncate");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, HasSubstr("Passes of the whole model"));
    EXPECT_THAT(result.error, testing::StartsWith("knap: warning: the profile is not saved: "));
    EXPECT_THAT(result.error, EndsWith(kFullText));
    EXPECT_EQ(count(result.error, "\n"), 1u);
    EXPECT_TRUE(partial_files().empty());
}

}  // namespace
}  // namespace knap::failing_disk_test
