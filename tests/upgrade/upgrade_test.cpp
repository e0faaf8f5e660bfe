// Files as earlier versions wrote them, which are kept in tests/upgrade/files and never changed:
// this version reads them, with all that is in them. tests/upgrade/write makes new ones.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "knap/knap.h"

#include "runtime/files/learned_file.h"
#include "runtime/files/plans_file.h"
#include "runtime/files/profile_file.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"
#include "tools/measure/report/bench_file.h"
#include "tools/offline_search/offline_search_file.h"

namespace knap::test::upgrade_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

fs::path kept(const char* name) {
    return fs::path(KNAP_ROOT) / "tests/upgrade/files" / name;
}

json content_of(const fs::path& path) {
    return json::parse(std::ifstream(path));
}

MachineFingerprint machine_of(const json& file) {
    MachineFingerprint machine;
    for (const auto& [name, value] : file["fields"].items()) {
        machine.fields.emplace_back(name, value);
    }
    return machine;
}

PlansModel model_of(const json& file) {
    return {.fingerprint = file["model"], .n_layers = file["n_layers"]};
}

// Everything that was in the kept file is in what this version writes of what it has read. There
// may be more.
void expect_kept(const json& before, const json& now, const std::string& where = "") {
    if (before.is_object() && now.is_object()) {
        for (const auto& [name, value] : before.items()) {
            ASSERT_TRUE(now.contains(name)) << where << "/" << name << " is lost";
            expect_kept(value, now[name], where + "/" + name);
        }
    } else if (before.is_array() && now.is_array()) {
        ASSERT_EQ(now.size(), before.size()) << where;
        for (std::size_t i = 0; i < before.size(); ++i) {
            expect_kept(before[i], now[i], where + "/" + std::to_string(i));
        }
    } else {
        EXPECT_EQ(now, before) << where;
    }
}

class Upgrade : public ::testing::Test {
  protected:
    Upgrade() { ::testing::internal::CaptureStderr(); }
    ~Upgrade() override { EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "no warning"; }
    const fs::path written_ = temporary_folder() / "rewritten.json";
};

TEST_F(Upgrade, ProfilesAreRead) {
    const json file = content_of(kept("profile-1.json"));
    const CostProfile blank{.layer_classes = file["layer_classes"]};
    const auto profile = load_profile(kept("profile-1.json"), machine_of(file), blank);
    ASSERT_TRUE(profile.has_value());
    EXPECT_GT(profile->samples.size(), 20u);
    expect_kept(file, profile_to_json(*profile, machine_of(file)));
}

TEST_F(Upgrade, PlansAreRead) {
    const json file = content_of(kept("plans-1.json"));
    const auto plans = load_plans(kept("plans-1.json"), model_of(file));
    EXPECT_GT(plans.size(), 5u);
    save_plans(written_, model_of(file), plans);
    expect_kept(file, content_of(written_));
}

TEST_F(Upgrade, WhatRunsLearnedIsRead) {
    const json file = content_of(kept("learned-1.json"));
    const Learned learned = load_learned(kept("learned-1.json"), machine_of(file), 4);
    EXPECT_GT(learned.ways.size(), 1u);
    EXPECT_GT(learned.costs.size(), 2u);
    save_learned(written_, learned, machine_of(file));
    expect_kept(file, content_of(written_));
}

TEST_F(Upgrade, SearchesGoOnAndTheirPlansAreUsed) {
    const json file = content_of(kept("search-1.json"));
    const json& settings = file["settings"];
    OfflineSearch search{.model = model_of(file),
                         .settings = {.n_predict = settings["n_predict"],
                                      .n_prompts = settings["n_prompts"],
                                      .prompts_hash = settings["prompts_hash"],
                                      .machine_hash = settings["machine_hash"],
                                      .seed = settings["seed"]}};
    load_trials(kept("search-1.json"), search);
    json before = file;
    before.erase("version");  // of the program that wrote it
    expect_kept(before, to_json(search));
    SpeculationOptions options;
    take_plan_of_file(kept("search-1.json"), model_of(file), options);
    EXPECT_EQ(options.settings["plan"], file["best"]["plan"]);
}

TEST_F(Upgrade, BenchmarksAreRead) {
    expect_kept(content_of(kept("bench-1.json")), to_json(load_report(kept("bench-1.json"))));
}

TEST_F(Upgrade, PromptCachesAreRead) {
    Engine engine({.model_path = tiny_model("tiny-llama", "F32"), .n_threads = 1});
    Session session(engine);
    session.load_prompt_cache(kept("prompt-cache-02.cache"));
    const std::vector<Token> prompt = engine.tokenize("Once upon");
    EXPECT_EQ(std::vector<Token>(session.history().begin(), session.history().end()), prompt);
    const Result result = session.generate(prompt, {.n_predict = 4});
    EXPECT_EQ(result.n_prompt_reused, static_cast<int>(prompt.size()) - 1);
}

// Of each kind the versions that this one cannot read, with what it says of them.
TEST(OtherVersions, OfPromptCachesAreRefusedByNumber) {
    Engine engine({.model_path = tiny_model("tiny-llama", "F32"), .n_threads = 1});
    Session session(engine);
    const auto refusal = [&](std::string_view start) {
        std::vector<std::byte> bytes = read_bytes(kept("prompt-cache-02.cache"));
        std::ranges::copy(std::as_bytes(std::span(start)), bytes.begin());
        try {
            session.load_prompt_cache(write_bytes("other.cache", bytes));
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string("no error");
    };
    EXPECT_THAT(
        refusal("knapkv01"),
        HasSubstr("expected a prompt cache of version 02, found one of version 01 (delete it"));
    EXPECT_THAT(refusal("knapkv03"), HasSubstr("found one of version 03 (delete it"));
    EXPECT_THAT(refusal("knapkv99"), HasSubstr("found one of version 99 (delete it"));
    EXPECT_THAT(refusal("knapkv0x"), HasSubstr("found another kind of file"));
    EXPECT_THAT(refusal("something"), HasSubstr("found another kind of file"));
}

}  // namespace
}  // namespace knap::test::upgrade_test
