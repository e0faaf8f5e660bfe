// Every draft source writes what plain decoding writes, on the default model and real text.
#include <array>
#include <memory>
#include <ostream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "knap/knap.h"

#include "support/baseline.h"
#include "support/default_model.h"
#include "support/eager_profile.h"

namespace knap::test::speculation_with_model_test {
namespace {

struct DraftCase {
    const char* name;
    SpeculationOptions speculation;
};

const std::array kDraftCases{
    DraftCase{"Window", {.strategy = "static", .settings = {{"plan", "a=w4+48"}}}},
    DraftCase{
        "SkippedModules",
        {.strategy = "static", .draft_max = 9, .settings = {{"plan", "a12=skip,m17+20=skip"}}}},
    DraftCase{"ConfidenceExit",
              {.strategy = "static",
               .draft_max = 16,
               .settings = {{"plan", "a5-25=w16+64,a13+19=skip"}, {"exit-confidence", "0.6"}}}},
    DraftCase{"EarlyExit",
              {.strategy = "static", .draft_max = 4, .settings = {{"plan", "exit=26"}}}},
    DraftCase{"Lookup", {.strategy = "lookup"}},
    DraftCase{"ReducedHead",
              {.strategy = "static", .settings = {{"plan", "a=w4+48,head=reduced"}}}},
    DraftCase{"Cascade", {.strategy = "cascade", .settings = {{"plan", "a=w4+48"}}}},
    DraftCase{"Tree",
              {.strategy = "static", .settings = {{"plan", "a=w4+48,m15=skip"}, {"width", "3"}}}},
    // Their searches follow each other closely, so that some happen within so few tokens.
    DraftCase{"Knapspec", {.strategy = "knapspec"}},
    DraftCase{"KnapspecPaper", {.strategy = "knapspec-paper", .settings = {{"interval", "8"}}}},
    DraftCase{"Clasp", {.strategy = "clasp", .settings = {{"interval", "4"}}}},
    DraftCase{"Swift",
              {.strategy = "swift", .settings = {{"window", "8"}, {"bayes-interval", "3"}}}},
    DraftCase{"Del", {.strategy = "del"}},
    DraftCase{"DraftVerify",
              {.strategy = "draft-verify", .settings = {{"plan", "a12=skip,m17+20=skip"}}}},
    DraftCase{"Asd", {.strategy = "asd", .settings = {{"refresh", "4"}}}},
    DraftCase{"Layerskip", {.strategy = "layerskip", .settings = {{"exit", "26"}}}},
    DraftCase{"Kangaroo", {.strategy = "kangaroo"}},
};

struct Text {
    const char* name;
    std::string prompt;
};

std::string repeated(const std::string& text, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) {
        out += text + " Entry " + std::to_string(i + 1) + ": stock counted, shelf swept.\n";
    }
    return out;
}

const std::array kTexts{
    Text{"Story", "The old ferryman untied the rope and looked across the river. On the far bank"},
    Text{"Code",
         "def count_words(path):\n    counts = {}\n    with open(path) as lines:\n        for line "
         "in lines:\n            for word in line.split():\n"},
    Text{"Log", repeated("The depot keeps a diary of what comes in and what goes out.", 22) +
                    "Summary of the diary:"},
    Text{"List", "Shopping list\n1. flour\n2. sugar\n3. eggs\n4. milk\n5. butter\n6. flour\n7."},
};

struct Settings {
    const char* name;
    SamplingOptions sampling;
};

const std::array kSettings{
    Settings{"Greedy", {}},
    Settings{"Sampled", {.temperature = 0.8f, .seed = 7}},
};

class SpeculationWithModel : public ::testing::Test {
  protected:
    static constexpr int kTokens = 32;

    static void SetUpTestSuite() {
        engine_ = std::make_unique<Engine>(config());
        session_ = std::make_unique<Session>(*engine_);
    }
    static RuntimeConfig config() {
        return {.model_path = default_model(),
                .adapter_path = KNAP_ROOT "/models/kangaroo-smollm2-135m.gguf",
                .n_ctx = 2048,
                .n_threads = 1};
    }
    static void TearDownTestSuite() {
        session_.reset();
        engine_.reset();
    }

    static Result generate(const Text& text, const Settings& settings, const DraftCase& drafting) {
        return session_->generate(engine_->tokenize(text.prompt),
                                  {.n_predict = kTokens,
                                   .sampling = settings.sampling,
                                   .speculation = drafting.speculation});
    }
    static Result plain(const Text& text, const Settings& settings) {
        return plain_text(*session_, engine_->tokenize(text.prompt),
                          {.n_predict = kTokens, .sampling = settings.sampling});
    }

    static std::unique_ptr<Engine> engine_;
    static std::unique_ptr<Session> session_;
};

std::unique_ptr<Engine> SpeculationWithModel::engine_;
std::unique_ptr<Session> SpeculationWithModel::session_;

TEST_F(SpeculationWithModel, EveryDraftCaseWritesThePlainText) {
    for (const Text& text : kTexts) {
        for (const Settings& settings : kSettings) {
            const Result plain = this->plain(text, settings);
            for (const DraftCase& drafting : kDraftCases) {
                SCOPED_TRACE(std::string(text.name) + ", " + settings.name + ", " + drafting.name);
                const Result result = generate(text, settings, drafting);
                EXPECT_EQ(result.tokens, plain.tokens);
                EXPECT_EQ(result.text, plain.text);
                EXPECT_EQ(result.stop, plain.stop);
                EXPECT_TRUE(result.speculation.row_invariant);
                EXPECT_LE(result.speculation.n_accepted, result.speculation.n_drafted);
            }
        }
    }
}

// What the default strategy drafts with depends on the machine's speed. A forced profile decides it
// here.
TEST_F(SpeculationWithModel, TheControllerWritesThePlainTextFromEverySource) {
    Engine engine(with_eager_profile(config()));
    Session session(engine);
    SourceCounts sources;
    for (const Settings& settings : kSettings) {
        SCOPED_TRACE(settings.name);
        for (const Text& text : kTexts) {
            SCOPED_TRACE(text.name);
            const Result plain = this->plain(text, settings);
            const Result result =
                session.generate(engine.tokenize(text.prompt), {.n_predict = kTokens,
                                                                .sampling = settings.sampling,
                                                                .speculation = eager_knapspec()});
            EXPECT_EQ(result.tokens, plain.tokens);
            EXPECT_EQ(result.text, plain.text);
            EXPECT_EQ(result.stop, plain.stop);
            EXPECT_TRUE(result.speculation.row_invariant);
            sources.add(result.speculation);
        }
    }
    sources.expect_both_outcomes_of_each();
}

TEST(DraftCases, CoverEveryStrategy) {
    std::set<std::string> covered{"autoregressive"};
    for (const DraftCase& drafting : kDraftCases) {
        covered.insert(drafting.speculation.strategy);
    }
    for (const StrategyInfo& strategy : strategies()) {
        EXPECT_TRUE(covered.contains(std::string(strategy.name))) << strategy.name;
    }
}

// The drafts above are worth something: a test of exactness in which nothing is accepted shows
// little.
TEST_F(SpeculationWithModel, CheapDraftsOftenAgree) {
    for (const char* name : {"Window", "SkippedModules", "Lookup", "ReducedHead", "Cascade",
                             "Clasp", "DraftVerify", "Kangaroo"}) {
        for (const DraftCase& drafting : kDraftCases) {
            if (std::string(name) == drafting.name) {
                const Result result = generate(kTexts[2], kSettings[0], drafting);
                EXPECT_GT(result.speculation.acceptance_rate, 0.3) << name;
                EXPECT_LT(result.speculation.rounds, result.n_generated - 1) << name;
            }
        }
    }
}

}  // namespace
}  // namespace knap::test::speculation_with_model_test
