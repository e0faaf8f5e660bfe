// RuntimeConfig::memory: what a run learns and the next one begins with.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "knap/knap.h"

#include "runtime/files/learned_file.h"
#include "runtime/session_impl.h"
#include "support/baseline.h"
#include "support/environment_variable.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::memory_test {
namespace {

namespace fs = std::filesystem;

class Memory : public ::testing::Test {
  protected:
    ~Memory() override { fs::remove_all(folder_); }

    static RuntimeConfig config(bool memory) {
        return {.model_path = tiny_model(), .n_ctx = 512, .n_threads = 1, .memory = memory};
    }

    static Result run(bool memory, const SpeculationOptions& how, float temperature = 0) {
        Engine engine(config(memory));
        Session session(engine);
        GenerateOptions request{.n_predict = 60, .speculation = how, .ignore_eos = true};
        request.sampling.temperature = temperature;
        return session.generate(random_tokens(150, 256, 1), request);
    }

    static Learned learned() {
        Engine engine(config(true));
        return impl_of(engine).learned->known();
    }

    bool has_file() const { return fs::exists(folder_) && !fs::is_empty(folder_); }

    fs::path folder_ = temporary_folder() / "memory";
    EnvironmentVariable variable_{"KNAP_CACHE_DIR", folder_.string()};
};

const SpeculationOptions kStatic{
    .strategy = "static", .draft_max = 3, .settings = {{"plan", "m1=skip"}}};
const SpeculationOptions kEager{
    .strategy = "knapspec",
    .settings = {{"budget", "1"}, {"margin", "0"}, {"windows", "8/32"}, {"knapsack", "always"}}};

TEST_F(Memory, OffReadsAndWritesNothing) {
    run(false, kEager);
    EXPECT_FALSE(has_file());
    run(true, kStatic);
    ASSERT_TRUE(has_file());
    Engine engine(config(false));
    EXPECT_EQ(impl_of(engine).learned, nullptr);
    EXPECT_TRUE(Session::Impl(impl_of(engine)).known.learned.is_empty());
}

TEST_F(Memory, CountsDraftsOfEveryWayByContextAndText) {
    const Result greedy = run(true, kStatic);
    const Result sampled = run(true, kStatic, 0.9f);
    const Learned known = learned();
    EXPECT_EQ(known.n_runs, 2);
    const auto seen = [&](bool is_sampled) {
        return known.drafts_of(
            {.name = "m1=skip", .bucket = context_bucket(150), .is_sampled = is_sampled});
    };
    EXPECT_EQ(seen(false).right, greedy.speculation.n_accepted);
    EXPECT_EQ(seen(true).right, sampled.speculation.n_accepted);
    EXPECT_GT(seen(false).all, seen(false).right);
    EXPECT_LE(seen(false).all, greedy.speculation.n_drafted);
}

TEST_F(Memory, LearnsNothingFromProjectionsAndOtherRules) {
    SpeculationOptions how = kStatic;
    how.assume_acceptance = 0.5;
    run(true, how);
    how = kStatic;
    how.acceptance = AcceptanceRule::equality;
    run(true, how, 0.9f);
    EXPECT_TRUE(learned().ways.empty());
    how = kEager;
    how.assume_acceptance = 0.5;
    run(true, how);
    EXPECT_TRUE(learned().is_empty());
}

TEST_F(Memory, ASecondRunBeginsWithCostsAndTablesOfCopies) {
    run(true, kEager);
    const Learned known = learned();
    EXPECT_FALSE(known.costs.empty());
    EXPECT_NE(known.copies[0], CopyTables());
    EXPECT_EQ(known.copies[1], CopyTables()) << "nothing was sampled";
    Engine engine(config(true));
    const Session::Impl session(impl_of(engine));
    EXPECT_TRUE(can_fit(session.known.profile));
    EXPECT_TRUE(session.known.profile.is_partial);
}

TEST_F(Memory, FoundPlansServeTheNextRun) {
    {
        Engine engine(config(true));
        Session::Impl session(impl_of(engine));
        session.notes.add_plan({.n_context = 150,
                                .plan = early_exit_plan(session.engine.model.n_layers, 2),
                                .agreed = 7,
                                .n_rows = 8},
                               1.5);
    }
    Engine engine(config(true));
    const Session::Impl session(impl_of(engine));
    ASSERT_EQ(session.known.plans.size(), 1u);
    EXPECT_EQ(session.known.plans[0].agreed, 7);
}

// So a benchmark can have both sides in one process.
TEST_F(Memory, AStrategyCanBeginWithoutIt) {
    run(true, kEager);
    Engine engine(config(true));
    Session::Impl session(impl_of(engine));
    SpeculationOptions how = kEager;
    EXPECT_EQ(&session.runs_for(how), &session.known);
    how.settings["memory"] = "off";
    const EarlierRuns& runs = session.runs_for(how);
    EXPECT_TRUE(runs.learned.is_empty());
    EXPECT_FALSE(can_fit(runs.profile));
    EXPECT_TRUE(runs.plans.empty());
    EXPECT_EQ(run(true, how).tokens, run(true, kEager).tokens);
}

// Sessions of one engine share what they learn.
TEST_F(Memory, ANewSessionKnowsWhatAnotherHasLearned) {
    Engine engine(config(true));
    Session first(engine);
    first.generate(random_tokens(150, 256, 1),
                   {.n_predict = 20, .speculation = kStatic, .ignore_eos = true});
    const Session::Impl second(impl_of(engine));
    EXPECT_FALSE(second.known.learned.ways.empty());
}

void collect_texts(const nlohmann::json& value, std::vector<std::string>& texts) {
    if (value.is_string()) {
        texts.push_back(value);
    }
    for (const nlohmann::json& member : value) {
        if (member.is_structured() || (member.is_string() && value.is_structured())) {
            collect_texts(member, texts);
        }
    }
}

TEST_F(Memory, HasPlansAndNamesButNoText) {
    const std::string secret = "the word is xylophone";
    {
        Engine engine(config(true));
        Session session(engine);
        for (const SpeculationOptions& how : {kEager, kStatic, {.strategy = "lookup"}}) {
            session.generate(engine.tokenize(secret + secret + secret + secret),
                             {.n_predict = 60, .speculation = how, .ignore_eos = true});
        }
    }
    int n_files = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
        if (entry.path().extension() == ".json") {
            ++n_files;
            nlohmann::json file = nlohmann::json::parse(std::ifstream(entry.path()));
            file.erase("fields");
            std::vector<std::string> texts;
            collect_texts(file, texts);
            EXPECT_GT(texts.size(), 3u);
            for (const std::string& text : texts) {
                EXPECT_THAT(text, ::testing::MatchesRegex(
                                      "[almew0-9=+,-]*(skip|full|exit|head|reduced|[almew0-9=+,-])*"
                                      "|copies|lookup|knap learned|prose|structured|choice"
                                      "|predicted|contested|leading|agreed|second|rare"));
            }
        }
    }
    EXPECT_EQ(n_files, 1);
}

}  // namespace
}  // namespace knap::test::memory_test
