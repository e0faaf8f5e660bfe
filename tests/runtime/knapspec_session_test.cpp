// The controller on real passes, with searches forced to happen: whatever it measures, searches and
// chooses, the text is that of plain decoding.
#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "support/baseline.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"
#include "tools/make_model/random_model.h"

namespace knap::test::knapspec_session_test {
namespace {

// Plenty of budget and no margin: everything is measured, searched for and tried.
SpeculationOptions eager(std::string more = "") {
    return {.strategy = "knapspec",
            .settings =
                parse_settings("budget=1,margin=0,windows=8/32,knapsack=always" + std::move(more))};
}

RuntimeConfig config_for(const std::filesystem::path& path) {
    return {.model_path = path, .n_ctx = 512, .n_threads = 1};
}

std::filesystem::path model_of_layers(int n_layers) {
    const auto path = temporary_folder() / ("layers-" + std::to_string(n_layers) + ".gguf");
    if (!std::filesystem::exists(path)) {
        write_random_model({.shape = "tiny-llama", .type = "Q8_0", .n_layers = n_layers}, path);
    }
    return path;
}

Result plain(Session& session,
             std::span<const Token> prompt,
             int n_predict,
             const SamplingOptions& sampling = {}) {
    return plain_text(session, prompt,
                      {.n_predict = n_predict, .sampling = sampling, .ignore_eos = true});
}

Result generate(Session& session,
                std::span<const Token> prompt,
                const SpeculationOptions& how,
                int n_predict,
                const SamplingOptions& sampling = {},
                const Observer& observer = {}) {
    return session.generate(
        prompt,
        {.n_predict = n_predict, .sampling = sampling, .speculation = how, .ignore_eos = true},
        observer);
}

class KnapspecSession : public ::testing::TestWithParam<int> {};

TEST_P(KnapspecSession, WritesThePlainText) {
    Engine engine(config_for(model_of_layers(GetParam())));
    Session session(engine);
    const std::vector<SamplingOptions> samplings = {{}, {.temperature = 0.9f, .seed = 3}};
    for (const SamplingOptions& sampling : samplings) {
        for (const int n_prompt : {1, 2, 5, 40, 200}) {
            const auto prompt = random_tokens(n_prompt, 256, static_cast<unsigned>(n_prompt));
            for (const int n_predict : {1, 2, 150}) {
                const Result expected = plain(session, prompt, n_predict, sampling);
                const Result found = generate(session, prompt, eager(), n_predict, sampling);
                EXPECT_EQ(found.tokens, expected.tokens) << n_prompt << " " << n_predict;
                EXPECT_EQ(found.stop, expected.stop);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Layers,
                         KnapspecSession,
                         ::testing::Values(1, 2, 4),
                         [](const auto& layers) { return "Of" + std::to_string(layers.param); });

TEST(KnapspecSearch, HappensAndIsReported) {
    Engine engine(config_for(model_of_layers(4)));
    Session session(engine);
    const Result result = generate(session, random_tokens(300, 256, 1), eager(), 150);
    EXPECT_GT(result.timings.search_ms, 0);
    ASSERT_FALSE(result.decisions.empty());
    for (const Decision& decision : result.decisions) {
        EXPECT_FALSE(decision.source.empty());
        EXPECT_FALSE(decision.reason.empty());
        EXPECT_GE(decision.token, 0);
        EXPECT_LE(decision.token, result.n_generated);
    }
}

// The flag is raised by how often it was asked, so that requests end in the prompt, in probes, in
// searches and in rounds.
TEST(KnapspecSearch, ACancelledOneLeavesTheSessionWhole) {
    Engine engine(config_for(model_of_layers(4)));
    const auto prompt = random_tokens(100, 256, 1);
    Session untouched(engine);
    const Result expected = plain(untouched, prompt, 60);
    Session session(engine);
    for (int n_polls = 1; n_polls < 4000; n_polls = n_polls * 3 / 2 + 1) {
        std::atomic<int> n_asked = 0;
        const Observer observer{.is_cancelled = [&] { return ++n_asked > n_polls; }};
        const Result cut = generate(session, prompt, eager(), 60, {}, observer);
        ASSERT_LE(cut.tokens.size(), expected.tokens.size());
        EXPECT_TRUE(std::equal(cut.tokens.begin(), cut.tokens.end(), expected.tokens.begin()));
    }
    EXPECT_EQ(generate(session, prompt, eager(), 60).tokens, expected.tokens);
}

TEST(KnapspecSearch, SmallBudgetIsKept) {
    Engine engine(config_for(model_of_layers(4)));
    Session session(engine);
    SpeculationOptions none = eager();
    none.settings = {{"budget", "0"}};
    const Result result = generate(session, random_tokens(300, 256, 1), none, 100);
    EXPECT_EQ(result.speculation.n_drafted, 0) << "without a budget and a profile nothing is known";
}

}  // namespace
}  // namespace knap::test::knapspec_session_test
