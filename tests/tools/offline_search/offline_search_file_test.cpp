#include "tools/offline_search/offline_search_file.h"

#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "forward/plan_text.h"
#include "support/tiny_model.h"

namespace knap::test::offline_search_file_test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const PlansModel kModel{.fingerprint = "00000000000000ab", .n_layers = 2};

OfflineSearch some_search() {
    return {
        .model = kModel,
        .settings = {.n_predict = 16,
                     .n_prompts = 4,
                     .prompts_hash = "12",
                     .machine_hash = "ef",
                     .seed = 7},
        .trials = {{.origin = TrialOrigin::starting_point,
                    .plan = parse_plan("a0=skip", 2),
                    .draft_max = 12,
                    .point = {0.7, 0.25, 0.125, 0.5},
                    .measured = {.speed = 0.75, .tokens_per_second = 60, .acceptance_rate = 0.5}},
                   {.origin = TrialOrigin::starting_point,
                    .plan = parse_plan("m1=skip", 2),
                    .draft_max = 9,
                    .point = {0.1, 0.2, 0.3, 0.9},
                    .measured = {.speed = 1.5, .tokens_per_second = 120, .acceptance_rate = 1}},
                   {.origin = TrialOrigin::optimiser,
                    .plan = parse_plan("full", 2),
                    .draft_max = 12,
                    .point = {0, 0, 0, 0},
                    .measured = {.speed = 1, .tokens_per_second = 80, .acceptance_rate = 0}}},
    };
}

OfflineSearch without_trials() {
    OfflineSearch search = some_search();
    search.trials.clear();
    return search;
}

class OfflineSearchFile : public ::testing::Test {
  protected:
    OfflineSearchFile() { save_search(path_, some_search()); }

    void change(const std::function<void(json&)>& edit) {
        save_search(path_, some_search());
        json file = json::parse(std::ifstream(path_));
        edit(file);
        std::ofstream(path_) << file;
    }

    // The error of resuming a search from the file; empty: none.
    std::string complaint(OfflineSearch search = without_trials()) const {
        try {
            load_trials(path_, search);
        } catch (const Error& error) {
            EXPECT_TRUE(search.trials.empty());
            return error.what();
        }
        return "";
    }

    // The error of drafting with the file's plan; empty: none.
    std::string plan_complaint(SpeculationOptions options = {},
                               const PlansModel& model = kModel) const {
        try {
            take_plan_of_file(path_, model, options);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }

    std::filesystem::path path_ = temporary_folder() / "search.json";
};

TEST_F(OfflineSearchFile, DeepJsonIsRefused) {
    std::ofstream(path_) << "{\"kind\": " << std::string(1'000'000, '[');
    EXPECT_THAT(complaint(), HasSubstr("levels of JSON"));
    change([](json& file) {
        json nested = 1;
        for (int i = 0; i < 100; ++i) {
            nested = json::array({nested});
        }
        file["settings"]["n_predict"] = nested;
    });
    EXPECT_THAT(complaint(), HasSubstr("levels of JSON"));
}

TEST_F(OfflineSearchFile, RoundTrips) {
    OfflineSearch loaded = without_trials();
    load_trials(path_, loaded);
    ASSERT_EQ(loaded.trials.size(), 3u);
    EXPECT_EQ(to_json(loaded), to_json(some_search()));
    EXPECT_EQ(loaded.trials[1].point, some_search().trials[1].point);
}

TEST_F(OfflineSearchFile, LoadsFilesWithoutOrigins) {
    change([](json& file) {
        for (json& trial : file["trials"]) {
            trial.erase("origin");
        }
    });
    OfflineSearch loaded = without_trials();
    load_trials(path_, loaded);
    EXPECT_EQ(to_json(loaded), to_json(some_search()));
}

TEST_F(OfflineSearchFile, RecordsModelSettingsAndBestPlan) {
    const json file = json::parse(std::ifstream(path_));
    EXPECT_EQ(file["kind"], "knap search");
    EXPECT_EQ(file["model"], kModel.fingerprint);
    EXPECT_EQ(file["n_layers"], 2);
    EXPECT_TRUE(file["version"].is_string());
    EXPECT_EQ(file["settings"]["method"], "draft-verify");
    EXPECT_EQ(file["settings"]["seed"], 7);
    EXPECT_EQ(file["best"]["plan"], "m1=skip");
    EXPECT_EQ(file["best"]["origin"], "starting-point");
    EXPECT_EQ(file["trials"][1]["origin"], "starting-point");
    EXPECT_EQ(file["trials"][2]["origin"], "optimiser");
    EXPECT_EQ(file["best"]["draft_max"], 9);
    EXPECT_EQ(file["best"]["speed"], 1.5);
    EXPECT_EQ(file["trials"].size(), 3u);
}

TEST_F(OfflineSearchFile, AMissingFileStartsANewSearch) {
    std::filesystem::remove(path_);
    EXPECT_EQ(complaint(), "");
}

TEST_F(OfflineSearchFile, RefusesTheFileOfAnotherSearch) {
    const auto differs = [&](const char* what) {
        return AllOf(StartsWith(path_.string() + ": this search cannot go on from the file: "),
                     HasSubstr(what), Not(HasSubstr("\n")));
    };
    OfflineSearch other = without_trials();
    other.model.fingerprint = "cd";
    EXPECT_THAT(complaint(other), differs("its model differs"));
    other = without_trials();
    other.settings.seed = 8;
    EXPECT_THAT(complaint(other), differs("its `seed` differs: expected '8', found '7'"));
    other = without_trials();
    other.settings.n_predict = 32;
    EXPECT_THAT(complaint(other), differs("its `n_predict` differs"));
    other = without_trials();
    other.settings.n_prompts = 8;
    EXPECT_THAT(complaint(other), differs("its `n_prompts` differs"));
    other = without_trials();
    other.settings.prompts_hash = "13";
    EXPECT_THAT(complaint(other), differs("its `prompts_hash` differs"));
    other = without_trials();
    other.settings.machine_hash = "12";
    EXPECT_THAT(complaint(other), differs("its `machine_hash` differs"));
    other = without_trials();
    other.settings.method = SearchMethod::layerskip;
    EXPECT_THAT(complaint(other), differs("its `"));
}

TEST_F(OfflineSearchFile, ErrorsNameTheDamage) {
    std::ofstream(path_) << "{\"kind\":";
    EXPECT_THAT(complaint(), HasSubstr("damaged text"));
    change([](json& file) { file["format"] = 2; });
    EXPECT_THAT(complaint(), HasSubstr("expected format 1, found 2"));
    change([](json& file) { file["settings"] = 3; });
    EXPECT_THAT(complaint(), HasSubstr("expected an object `settings`, found number"));
    change([](json& file) { file["trials"][1]["plan"] = "a9=skip"; });
    EXPECT_THAT(complaint(), HasSubstr("`plan`"));
    change([](json& file) { file["trials"][1]["speed"] = -1; });
    EXPECT_THAT(complaint(), HasSubstr("`speed`"));
    change([](json& file) { file["trials"][1]["draft_max"] = 65; });
    EXPECT_THAT(complaint(), HasSubstr("`draft_max`"));
    change([](json& file) { file["trials"][1]["point"] = {0.5}; });
    EXPECT_THAT(complaint(), HasSubstr("expected 4 numbers in `point`, found 1"));
    change([](json& file) { file["trials"][1]["point"][2] = "x"; });
    EXPECT_THAT(complaint(), HasSubstr("expected numbers from 0 to 1 in `point`, found '\"x\"'"));
    change([](json& file) { file["trials"][1]["point"][2] = 1.5; });
    EXPECT_THAT(complaint(), HasSubstr("expected numbers from 0 to 1 in `point`, found '1.5'"));
}

TEST_F(OfflineSearchFile, ProvidesItsBestPlanForDrafting) {
    SpeculationOptions options{.strategy = "static"};
    take_plan_of_file(path_, kModel, options);
    EXPECT_EQ(options,
              (SpeculationOptions{
                  .strategy = "static", .draft_max = 9, .settings = {{"plan", "m1=skip"}}}));
    SpeculationOptions shorter{.draft_max = 3};
    take_plan_of_file(path_, kModel, shorter);
    EXPECT_EQ(shorter.draft_max, 3);
}

TEST_F(OfflineSearchFile, RefusesAPlanFileThatDoesNotFit) {
    EXPECT_THAT(plan_complaint({}, {.fingerprint = "cd", .n_layers = 2}),
                AllOf(StartsWith("--plan-file: "), HasSubstr(path_.string()),
                      HasSubstr("its model differs")));
    EXPECT_EQ(plan_complaint({.settings = {{"plan", "exit=1"}}}),
              "--plan-file: expected either this or --draft-plan, found both");
    change([](json& file) { file["best"] = nullptr; });
    EXPECT_THAT(plan_complaint(), HasSubstr("expected an object `best`, found null"));
    change([](json& file) { file["best"]["plan"] = "a=w1+1,a0=w2+2,x"; });
    EXPECT_THAT(plan_complaint(), HasSubstr("`plan`"));
    change([](json& file) { file["kind"] = "knap plans"; });
    EXPECT_THAT(plan_complaint(), HasSubstr("expected 'knap search', found 'knap plans'"));
    std::filesystem::remove(path_);
    EXPECT_THAT(plan_complaint(), HasSubstr("no such file"));
}

}  // namespace
}  // namespace knap::test::offline_search_file_test
