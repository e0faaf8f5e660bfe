#include "runtime/learned_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_lock.h"
#include "base/log.h"
#include "runtime/files/learned_file.h"
#include "support/tiny_model.h"

namespace knap::test::learned_store_test {
namespace {

namespace fs = std::filesystem;

constexpr int kLayers = 4;

MachineFingerprint some_machine() {
    return {{{"model", "0123456789abcdef"}, {"threads", "2"}}};
}

Learned drafts_of(const std::string& name, double n_drafts) {
    Learned learned;
    learned.add_drafts({.name = name}, {.right = n_drafts / 2, .all = n_drafts});
    return learned;
}

class LearnedStoreTest : public ::testing::Test {
  protected:
    ~LearnedStoreTest() override { fs::remove_all(path_.parent_path()); }

    LearnedStore open() { return {path_, some_machine(), kLayers}; }
    Learned saved() const { return load_learned(path_, some_machine(), kLayers); }
    double n_saved(const std::string& name) const { return saved().drafts_of({.name = name}).all; }

    // What another thread does soon.
    static void expect_soon(const std::function<bool()>& has_happened) {
        for (int i = 0; i < 2000; ++i) {
            if (has_happened()) {
                return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        ADD_FAILURE() << "after 20 seconds";
    }

    // In another process, which ends without destructors of this one.
    static pid_t start(const std::function<void()>& work) {
        const pid_t child = fork();
        if (child == 0) {
            work();
            _exit(0);
        }
        return child;
    }
    static int wait_for(pid_t child) {
        int status = 0;
        waitpid(child, &status, 0);
        return status;
    }

    fs::path path_ = temporary_folder() / "store" / "learned-1.json";
};

TEST_F(LearnedStoreTest, SavesAtItsEndWhatTheNextRunKnows) {
    {
        LearnedStore store = open();
        Learned notes = drafts_of("copies", 8);
        store.add(notes);
        EXPECT_TRUE(notes.is_empty());
        EXPECT_FALSE(fs::exists(path_)) << "too little to save during a run";
        EXPECT_EQ(store.known().drafts_of({.name = "copies"}).all, 8);
    }
    const LearnedStore next = open();
    EXPECT_EQ(next.known().drafts_of({.name = "copies"}).all, 8);
    EXPECT_EQ(next.known().n_runs, 1);
}

TEST_F(LearnedStoreTest, SavesDuringALongRunAndCountsItOnce) {
    LearnedStore store = open();
    for (int i = 0; i < 100; ++i) {
        Learned notes = drafts_of(std::to_string(i % 10), 50);
        store.add(notes);
    }
    expect_soon([&] { return fs::exists(path_); });
    EXPECT_EQ(saved().n_runs, 1);
}

// A thousand tokens are about as much as a thousand judged drafts, however many copies of each were
// compared, and however few ways there are.
TEST_F(LearnedStoreTest, SavesAfterAboutAThousandTokens) {
    LearnedStore store = open();
    const auto answer = [&](int n_tokens) {
        Learned notes = drafts_of("copies", n_tokens);
        CopyAcceptance acceptance;
        acceptance.note_in(notes.copies[0][0]);
        for (int i = 0; i < n_tokens; ++i) {
            acceptance.observe({.length = 1, .standing = CopyEvidence::Standing::agreed}, true);
            acceptance.observe({.length = 1, .standing = CopyEvidence::Standing::second}, false);
            acceptance.observe({.length = 1, .standing = CopyEvidence::Standing::rare}, false);
        }
        store.add(notes);
    };
    answer(1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_FALSE(fs::exists(path_));
    answer(100);
    expect_soon([&] { return fs::exists(path_); });
}

// Here it takes as long as somebody reads the log, which says that another process is saving.
TEST_F(LearnedStoreTest, NoRequestWaitsUntilItIsSaved) {
    fs::create_directories(path_.parent_path());
    std::atomic<bool> is_saving = false;
    std::promise<void> end;
    LearnedStore store = open();
    {
        const FileLock other(path_.parent_path() / "learned.lock", [] { FAIL(); });
        set_log(LogLevel::info,
                [&is_saving, has_ended = end.get_future().share()](LogLevel, std::string_view) {
                    is_saving = true;
                    has_ended.wait_for(std::chrono::seconds(60));
                });
        const Stopwatch watch;
        for (int i = 0; i < 8; ++i) {
            Learned notes = drafts_of("copies", 200);
            store.add(notes);
            EXPECT_GT(store.known().drafts_of({.name = "copies"}).all, 0);
        }
        EXPECT_LT(watch.elapsed_ms(), 30'000) << "somebody waited";
        expect_soon([&] { return is_saving.load(); });
        end.set_value();
        set_log(LogLevel::warning, {});
    }
    expect_soon([&] {
        Learned notes = drafts_of("copies", 1);
        store.add(notes);
        return n_saved("copies") > 0;
    });
}

TEST_F(LearnedStoreTest, WritesNothingWhenNothingWasLearned) {
    {
        LearnedStore store = open();
        Learned nothing;
        store.add(nothing);
    }
    EXPECT_FALSE(fs::exists(path_.parent_path()));
}

// Each adds one draft at a time in many runs, all at once: none is lost.
TEST_F(LearnedStoreTest, ProcessesThatShareItLoseNothing) {
    constexpr int kProcesses = 4;
    constexpr int kRuns = 10;
    std::vector<pid_t> children;
    for (int p = 0; p < kProcesses; ++p) {
        children.push_back(start([&] {
            for (int i = 0; i < kRuns; ++i) {
                LearnedStore store = open();
                Learned notes = drafts_of("shared", 1);
                notes.add(drafts_of("of " + std::to_string(p), 1));
                store.add(notes);
            }
        }));
    }
    for (const pid_t child : children) {
        EXPECT_EQ(wait_for(child), 0);
    }
    EXPECT_EQ(n_saved("shared"), kProcesses * kRuns);
    EXPECT_EQ(n_saved("of 2"), kRuns);
    EXPECT_EQ(saved().n_runs, kProcesses * kRuns);
}

TEST_F(LearnedStoreTest, AProcessThatIsKilledLeavesAWholeFile) {
    for (int i = 1; i <= 10; ++i) {
        const pid_t child = start([&] {
            for (;;) {
                LearnedStore store = open();
                Learned notes = drafts_of("endless", 1);
                store.add(notes);
            }
        });
        set_log(LogLevel::warning, {});
        ::testing::internal::CaptureStderr();
        while (saved().n_runs < 5 * i) {  // reads while the child writes
            std::this_thread::yield();
        }
        kill(child, SIGKILL);
        wait_for(child);
        EXPECT_GE(saved().n_runs, 5 * i);
        EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    }
    {
        LearnedStore store = open();
        Learned notes = drafts_of("after", 3);
        store.add(notes);
    }
    EXPECT_EQ(n_saved("after"), 3) << "the lock of a killed process is free";
}

TEST_F(LearnedStoreTest, DoesNotWaitForAnotherProcessDuringARun) {
    fs::create_directories(path_.parent_path());
    LearnedStore store = open();
    {
        const FileLock other(path_.parent_path() / "learned.lock", [] { FAIL(); });
        for (int i = 0; i < 100; ++i) {
            Learned notes = drafts_of(std::to_string(i % 10), 50);
            store.add(notes);
        }
        EXPECT_FALSE(fs::exists(path_));
    }
    expect_soon([&] {
        Learned notes = drafts_of("more", 1);
        store.add(notes);
        return n_saved("more") > 0;
    });
    EXPECT_GT(n_saved("3"), 0) << "kept until the lock was free";
}

TEST_F(LearnedStoreTest, AFileThatIsNotUsableIsReplaced) {
    MachineFingerprint other = some_machine();
    other.fields[1].second = "64";
    for (const std::function<void()>& write :
         {std::function<void()>([&] { std::ofstream(path_) << "{\"kind\": \"knap le"; }),
          std::function<void()>([&] { save_learned(path_, drafts_of("old", 9), other); })}) {
        fs::create_directories(path_.parent_path());
        write();
        set_log(LogLevel::warning, {});
        ::testing::internal::CaptureStderr();
        {
            LearnedStore store = open();
            EXPECT_TRUE(store.known().is_empty());
            Learned notes = drafts_of("new", 4);
            store.add(notes);
        }
        const std::string warning = ::testing::internal::GetCapturedStderr();
        EXPECT_EQ(std::ranges::count(warning, '\n'), 1) << warning;
        EXPECT_EQ(n_saved("new"), 4);
        EXPECT_EQ(n_saved("old"), 0);
    }
}

TEST_F(LearnedStoreTest, AFolderThatCannotBeWrittenDisturbsNobody) {
    const fs::path file = temporary_folder() / "no_folder";
    std::ofstream(file) << "x";
    ::testing::internal::CaptureStderr();
    {
        LearnedStore store(file / "learned-1.json", some_machine(), kLayers);
        Learned notes = drafts_of("lost", 4);
        store.add(notes);
    }
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace knap::test::learned_store_test
