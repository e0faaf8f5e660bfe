#include "runtime/files/learned_file.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "support/damaged_file.h"
#include "support/tiny_model.h"

namespace knap::test::learned_file_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr int kLayers = 4;

MachineFingerprint some_machine() {
    return {{{"model", "0123456789abcdef"}, {"knap", "1.0.0"}, {"threads", "2"}}};
}

Learned some_learned() {
    Learned learned{.n_runs = 3};
    learned.add_drafts({.name = "a=w16+64", .bucket = 2}, {.right = 1.0 / 3, .all = 10});
    learned.add_drafts({.name = "copies", .bucket = 0, .is_sampled = true}, {.right = 7, .all = 8});
    learned.copies[0][0][0] = {.right = 1, .all = 3};
    learned.copies[1][3][CopyAcceptance::kCells - 1] = {.right = 2, .all = 2};
    learned.add_plan(
        {.n_context = 700, .plan = early_exit_plan(kLayers, 2), .agreed = 5, .n_rows = 8}, 1.25);
    learned.add_cost({.plan = ModulePlan(kLayers),
                      .n_context = 700,
                      .n_rows = 4,
                      .ms = 2.5,
                      .spread_ms = 0.1,
                      .n_measured = 5,
                      .was_busy = true});
    return learned;
}

void expect_same(const Learned& found, const Learned& expected) {
    EXPECT_EQ(learned_to_json(found), learned_to_json(expected));
}

class LearnedFile : public ::testing::Test {
  protected:
    LearnedFile() { save_learned(path_, some_learned(), some_machine()); }
    ~LearnedFile() override { fs::remove_all(path_.parent_path()); }

    Learned load() { return load_learned(path_, some_machine(), kLayers); }

    // Expects one line of warning, which it returns, and nothing learned.
    std::string warning_after(const std::function<void(json&)>& change) {
        save_learned(path_, some_learned(), some_machine());
        json file = json::parse(std::ifstream(path_));
        change(file);
        std::ofstream(path_) << file;
        set_log(LogLevel::warning, {});  // forgets the warnings that were given
        ::testing::internal::CaptureStderr();
        EXPECT_TRUE(load().is_empty());
        std::string text = ::testing::internal::GetCapturedStderr();
        EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
        return text;
    }

    fs::path path_ = temporary_folder() / "learned" / "learned-1.json";
};

TEST_F(LearnedFile, LoadsWhatWasSavedWithoutAWarning) {
    ::testing::internal::CaptureStderr();
    const Learned loaded = load();
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    expect_same(loaded, some_learned());
    EXPECT_EQ(loaded.n_runs, 3);
    EXPECT_EQ(loaded.copies, some_learned().copies);
    EXPECT_TRUE(loaded.costs[0].sample.was_busy);
    EXPECT_TRUE(
        load_learned(path_.parent_path() / "other.json", some_machine(), kLayers).is_empty());
}

TEST_F(LearnedFile, OfAnotherMachineOrVersionIsIgnoredWithAWarning) {
    EXPECT_THAT(
        warning_after([](json& file) { file["fields"]["threads"] = "4"; }),
        HasSubstr("learned-1.json is ignored: its threads differs: expected '2', found '4'"));
    EXPECT_THAT(warning_after([](json& file) { file["fields"]["knap"] = "0.9.0"; }),
                HasSubstr("its knap differs"));
    EXPECT_THAT(warning_after([](json& file) { file["format"] = 2; }),
                HasSubstr("expected format 1, found 2"));
}

TEST_F(LearnedFile, ImpossibleNumbersAreIgnoredWithAWarning) {
    EXPECT_THAT(warning_after([](json& file) { file["ways"][0]["accepted"] = 11; }),
                HasSubstr("expected `accepted` from 0 to 10, found 11"));
    EXPECT_THAT(warning_after([](json& file) { file["ways"][0]["judged"] = 1e9; }),
                HasSubstr("`judged`"));
    EXPECT_THAT(warning_after([](json& file) { file["ways"][0]["run"] = 4; }), HasSubstr("`run`"));
    EXPECT_THAT(warning_after([](json& file) { file["copies"][0]["kind"] = "verse"; }),
                HasSubstr("expected `kind` to be one of prose, "));
    EXPECT_THAT(warning_after([](json& file) { file["plans"][0]["plan"] = "a99=skip"; }),
                HasSubstr("`plan`"));
    EXPECT_THAT(warning_after([](json& file) { file["costs"][0]["ms"] = 0; }),
                HasSubstr("expected the time of a pass"));
    EXPECT_THAT(warning_after([](json& file) { file["runs"] = -1; }), HasSubstr("`runs`"));
    EXPECT_THAT(
        warning_after([](json& file) { file["ways"] = std::vector<json>(1000, file["ways"][0]); }),
        HasSubstr("expected at most 96 of `ways`, found 1000"));
}

TEST_F(LearnedFile, DamageGivesAWarningOrBoundedCounts) {
    int n_ignored = 0;
    ::testing::internal::CaptureStderr();
    for_each_damage(path_, [&] {
        set_log(LogLevel::warning, {});
        const Learned loaded = load();
        n_ignored += loaded.is_empty() ? 1 : 0;
        for (const auto& [way, seen] : loaded.ways) {
            EXPECT_GE(seen.drafts.right, 0);
            EXPECT_LE(seen.drafts.right, seen.drafts.all);
            EXPECT_LE(seen.drafts.all, Learned::kMostDrafts);
        }
    });
    const std::string warnings = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::ranges::count(warnings, '\n'), n_ignored) << "one line each";
    EXPECT_GT(n_ignored, 100);
}

// However much was learned.
TEST_F(LearnedFile, IsBelowAMegabyte) {
    Learned learned{.n_runs = 1};
    for (std::size_t i = 0; i < 2 * Learned::kMostWays; ++i) {
        std::string name = std::to_string(i);
        name.resize(Learned::kLongestName, '+');
        learned.ways[{.name = name}] = {.drafts = {.right = 1.0 / 3, .all = 100.0 / 3}};
    }
    for (CopyTables& tables : learned.copies) {
        for (CopyAcceptance::Table& table : tables) {
            table.fill({.right = 1.0 / 3, .all = 100.0 / 3});
        }
    }
    Learned bounded;
    bounded.add(learned);
    save_learned(path_, bounded, some_machine());
    EXPECT_LT(fs::file_size(path_), 1u << 20);
    expect_same(load(), bounded);
}

TEST_F(LearnedFile, OnlyTheLatestFilesOfAFolderAreKept) {
    const fs::path folder = path_.parent_path();
    const fs::path foreign = folder / "profile-1.json";
    std::ofstream(foreign) << "{}";
    const auto now = fs::file_time_type::clock::now();
    for (int i = 2; i <= 5; ++i) {
        const fs::path path = folder / ("learned-" + std::to_string(i) + ".json");
        fs::copy_file(path_, path);
        fs::last_write_time(path, now - std::chrono::hours(i));
    }
    const fs::path abandoned = folder / "learned-2.json.1-1.partial";
    std::ofstream(abandoned) << "{";
    drop_old_learned(folder, 3);
    EXPECT_TRUE(fs::exists(foreign));
    EXPECT_TRUE(fs::exists(path_));
    EXPECT_TRUE(fs::exists(folder / "learned-3.json"));
    EXPECT_FALSE(fs::exists(folder / "learned-4.json"));
    EXPECT_FALSE(fs::exists(abandoned));
}

}  // namespace
}  // namespace knap::test::learned_file_test
