#include "runtime/files/plans_file.h"

#include <algorithm>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "support/damaged_file.h"
#include "support/environment_variable.h"
#include "support/tiny_model.h"

namespace knap::test::plans_file_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const PlansModel kModel{.fingerprint = "00000000000000ab", .n_layers = 6};

std::vector<SavedPlan> some_plans() {
    ModulePlan mixed = uniform_window_plan(kModel.n_layers, {.sinks = 16, .recent = 128});
    mixed.set(3, Module::mlp, Level::skip);
    mixed.set(4, Module::mlp, Level::with_experts(2));
    return {{.n_context = 512, .plan = mixed, .agreed = 60.5, .n_rows = 64},
            {.n_context = 4096,
             .plan = early_exit_plan(kModel.n_layers, 4),
             .agreed = 0,
             .n_rows = 32}};
}

void expect_same(const std::vector<SavedPlan>& found, const std::vector<SavedPlan>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(found[i].n_context, expected[i].n_context);
        EXPECT_EQ(found[i].plan, expected[i].plan);
        EXPECT_EQ(found[i].agreed, expected[i].agreed);
        EXPECT_EQ(found[i].n_rows, expected[i].n_rows);
    }
}

class PlansFile : public ::testing::Test {
  protected:
    PlansFile() { save_plans(path_, kModel, some_plans()); }
    ~PlansFile() override { fs::remove_all(path_.parent_path()); }

    // Loads the file after a change. Returns the warning, which must be one line.
    std::string warning_after(const std::function<void(json&)>& change) {
        save_plans(path_, kModel, some_plans());
        json file = json::parse(std::ifstream(path_));
        change(file);
        std::ofstream(path_) << file;
        set_log(LogLevel::warning, {});  // forgets the warnings that were given
        ::testing::internal::CaptureStderr();
        const auto loaded = load_plans(path_, kModel);
        std::string text = ::testing::internal::GetCapturedStderr();
        EXPECT_TRUE(loaded.empty());
        EXPECT_THAT(text, HasSubstr("knap: warning: plans " + path_.string() + " are ignored: "));
        EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
        return text;
    }

    fs::path path_ = temporary_folder() / "plans" / "plans.json";
};

TEST_F(PlansFile, LoadsWhatWasSavedWithoutAWarning) {
    ::testing::internal::CaptureStderr();
    expect_same(load_plans(path_, kModel), some_plans());
    EXPECT_TRUE(load_plans(path_.parent_path() / "none.json", kModel).empty());
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(PlansFile, WarnsOnceOfTheSameDamage) {
    std::ofstream(path_) << "{";
    set_log(LogLevel::warning, {});
    ::testing::internal::CaptureStderr();
    for (int session = 0; session < 3; ++session) {
        EXPECT_TRUE(load_plans(path_, kModel).empty());
    }
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(text, HasSubstr("plans "));
    EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
}

TEST_F(PlansFile, IsNamedAfterItsModelInTheCacheFolder) {
    const EnvironmentVariable folder("KNAP_CACHE_DIR", "/cache");
    EXPECT_EQ(plans_path(kModel), "/cache/plans-00000000000000ab.json");
}

TEST_F(PlansFile, FileOfAnotherModelIsRefused) {
    EXPECT_THAT(warning_after([](json& file) { file["model"] = "ff"; }),
                HasSubstr("its model differs: expected '00000000000000ab', found 'ff'"));
    EXPECT_THAT(warning_after([](json& file) { file["n_layers"] = 7; }),
                HasSubstr("expected 6 layers, found 7"));
    EXPECT_THAT(warning_after([](json& file) { file["format"] = 0; }),
                HasSubstr("expected format 1, found 0"));
    EXPECT_THAT(warning_after([](json& file) { file["kind"] = "knap profile"; }),
                HasSubstr("expected 'knap plans', found 'knap profile'"));
}

TEST_F(PlansFile, PlansThatCannotRunAreRefused) {
    const auto warning_with = [this](const char* name, const json& value) {
        return warning_after([&](json& file) { file["plans"][1][name] = value; });
    };
    EXPECT_THAT(warning_with("plan", "a9=skip"), HasSubstr("`plan`"));
    EXPECT_THAT(warning_with("plan", "nonsense"), HasSubstr("`plan`"));
    EXPECT_THAT(warning_with("plan", "head=reduced"), HasSubstr("expected head=full"));
    EXPECT_THAT(warning_with("plan", "a0=w1+1,a1=w1+2,a2=w1+3,a3=w1+4,a4=w1+5"),
                HasSubstr("expected at most 4 different windows, found 5"));
    EXPECT_THAT(warning_with("agreed", 33), HasSubstr("expected `agreed` from 0 to 32, found 33"));
    EXPECT_THAT(warning_with("n_rows", 0), HasSubstr("`n_rows`"));
    EXPECT_THAT(warning_with("n_context", 0), HasSubstr("`n_context`"));
}

TEST_F(PlansFile, SurvivesDamage) {
    int n_refused = 0;
    ::testing::internal::CaptureStderr();
    for_each_damage(path_, [&] {
        set_log(LogLevel::warning, {});  // forgets the warnings that were given
        const auto loaded = load_plans(path_, kModel);
        n_refused += loaded.empty() ? 1 : 0;
        for (const SavedPlan& saved : loaded) {
            EXPECT_NO_THROW(check_runnable(saved.plan, kModel.n_layers));
        }
    });
    const std::string warnings = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::ranges::count(warnings, '\n'), n_refused) << "one line each";
    EXPECT_GT(n_refused, 400);
}

}  // namespace
}  // namespace knap::test::plans_file_test
