#include "decode/swift/swift.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "forward/plan_text.h"
#include "support/fake_round.h"
#include "support/search_rig.h"
#include "support/strategy_rig.h"

namespace knap::swift_swift_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kLayers = 6;
constexpr int kPrompt = 20;
constexpr int kVocab = 11;
constexpr int kWindow = 4;
// The prompt gives the first token and each round one more: after this many rounds, W + 2 tokens of
// the answer have rows.
constexpr int kFirstSearch = kWindow + 2;
const std::string kFirstPlan = "l1+3=skip";

// What a candidate was evaluated on.
struct Evaluation {
    std::string plan;
    std::vector<Token> text;
    int n_context;
    int n_rounds;
};

// Requests, round by round, with prepared scores for candidates. The last score repeats.
class Requests {
  public:
    explicit Requests(const SwiftOptions& options = {.window = kWindow})
        : strategy(options, kLayers, [this](const auto& plan, auto text, int n_context) {
              const std::size_t i = std::min(evaluations.size(), scores.size() - 1);
              evaluations.push_back(
                  {to_string(plan), {text.begin(), text.end()}, n_context, n_rounds});
              return scores[i];
          }) {
        begin();
    }

    void begin(int n_prompt = kPrompt, const SamplingOptions& sampling = {.temperature = 0}) {
        history.clear();
        for (int i = 0; i <= n_prompt; ++i) {
            history.push_back(test::token_at(i, kVocab));
        }
        strategy.begin(
            {.prompt = std::span(history).first(history.size() - 1), .sampling = sampling});
        n_rounds = 0;
    }

    DraftWithPlan draft() {
        return std::get<DraftWithPlan>(
            strategy.propose({.history = history, .n_room = kMaxDraft}).draft);
    }

    // No draft is accepted, so a round emits one token.
    void rounds(int n) {
        for (int i = 0; i < n; ++i) {
            latest_plan = to_string(*draft().plan);
            const test::FakeRound done(
                {.row = static_cast<int>(history.size()) - 1, .n_drafted = 2, .n_vocab = kVocab});
            history.push_back(done.outcome().emitted.back());
            strategy.observe(done.outcome());
            ++n_rounds;
        }
    }

    std::vector<int> search_rounds() const {
        std::vector<int> all;
        for (const Evaluation& evaluation : evaluations) {
            all.push_back(evaluation.n_rounds);
        }
        return all;
    }

    std::vector<std::optional<double>> scores = {0.5};
    std::vector<Evaluation> evaluations;
    int n_rounds = 0;  // of the request
    SwiftStrategy strategy;
    std::vector<Token> history;
    std::string latest_plan;  // of the latest round
};

TEST(Swift, TriesOneCandidatePerRoundOnceTheAnswerIsLongerThanTheWindow) {
    Requests requests;
    requests.rounds(kFirstSearch + 3);
    EXPECT_THAT(requests.search_rounds(),
                ElementsAre(kFirstSearch, kFirstSearch + 1, kFirstSearch + 2));
}

TEST(Swift, CanWaitSeveralRoundsBetweenCandidates) {
    Requests requests({.window = kWindow, .opt_interval = 4});
    requests.rounds(18);
    // A search may follow rounds 1, 5, 9, ...
    EXPECT_THAT(requests.search_rounds(), ElementsAre(9, 13, 17));
}

TEST(Swift, CandidatesAreEvaluatedOnTheFirstTokensOfTheAnswer) {
    Requests requests;
    requests.rounds(kFirstSearch + 5);
    for (const int n_prompt : {kPrompt, 7}) {
        requests.evaluations.clear();
        requests.begin(n_prompt);
        requests.rounds(kFirstSearch + 5);
        ASSERT_THAT(requests.evaluations, SizeIs(5));
        for (const Evaluation& evaluation : requests.evaluations) {
            EXPECT_EQ(evaluation.n_context, n_prompt);
            const auto first = requests.history.begin() + n_prompt;
            EXPECT_EQ(evaluation.text, std::vector<Token>(first, first + kWindow + 1));
        }
    }
}

TEST(Swift, BetterCandidateDraftsImmediately) {
    Requests requests;
    requests.scores = {0.25, 0.125, 0.5, 0.5};
    requests.rounds(kFirstSearch);
    EXPECT_EQ(requests.latest_plan, kFirstPlan);
    std::vector<std::string> plans;
    for (int i = 0; i < 4; ++i) {
        requests.rounds(1);
        plans.push_back(requests.latest_plan);
    }
    const auto& tried = requests.evaluations;
    EXPECT_THAT(plans, ElementsAre(tried[0].plan, tried[0].plan, tried[2].plan, tried[2].plan));
    EXPECT_NE(tried[0].plan, tried[2].plan);
}

TEST(Swift, KeepsItsPlanAndBestScoreAcrossRequests) {
    Requests requests;
    requests.scores = {0.5, 0.4};
    requests.rounds(kFirstSearch + 1);
    requests.begin();
    requests.rounds(1);
    EXPECT_EQ(requests.latest_plan, requests.evaluations[0].plan);
    requests.rounds(kFirstSearch);
    ASSERT_THAT(requests.evaluations, SizeIs(2));
    EXPECT_EQ(requests.latest_plan, requests.evaluations[0].plan) << "0.4 is less than 0.5";
}

TEST(Swift, KeepsThePlanAfterTheSearchEnds) {
    Requests requests({.window = kWindow, .search = {.patience = 2}});
    requests.scores = {0.5, 0.1};
    requests.rounds(20);
    EXPECT_THAT(requests.evaluations, SizeIs(4)) << "the first, and three that were no better";
    requests.scores = {0.9};
    requests.begin();
    requests.rounds(20);
    EXPECT_THAT(requests.evaluations, SizeIs(4));
    EXPECT_EQ(requests.latest_plan, requests.evaluations[0].plan);
}

TEST(Swift, CancelledEvaluationChangesNothing) {
    Requests requests;
    requests.scores = {std::nullopt, 0.5};
    requests.rounds(kFirstSearch + 1);
    EXPECT_EQ(requests.latest_plan, kFirstPlan);
    EXPECT_THAT(requests.strategy.decisions(), SizeIs(1));
    requests.begin();
    requests.rounds(kFirstSearch + 1);
    ASSERT_THAT(requests.evaluations, SizeIs(2));
    EXPECT_EQ(requests.evaluations[1].plan, requests.evaluations[0].plan) << "tried again";
    EXPECT_EQ(requests.latest_plan, requests.evaluations[1].plan);
}

TEST(Swift, DraftsAChainOfUpTo25WithSiblingsByConfidence) {
    Requests requests;
    const DraftWithPlan greedy = requests.draft();
    EXPECT_EQ(greedy.stop.n_max, 25);
    EXPECT_EQ(greedy.stop.exit_confidence, 0.8f);
    EXPECT_EQ(greedy.stop.confidence_of, ConfidenceOf::drafted);
    EXPECT_EQ(greedy.width, 10);
    ASSERT_THAT(greedy.width_steps, SizeIs(3));
    EXPECT_EQ(greedy.width_steps[0].width, 3);
    requests.begin(kPrompt, {.temperature = 0.7f});
    EXPECT_EQ(requests.draft().width_steps[0].width, 1);

    Requests chain({.tree = SwiftTree::off, .window = kWindow});
    EXPECT_EQ(chain.draft().width, 1);
    EXPECT_THAT(chain.draft().width_steps, IsEmpty());
}

TEST(Swift, StaysWithinTheRoom) {
    Requests requests({.draft_max = 9, .exit_confidence = 0.5f});
    EXPECT_EQ(requests.draft().stop.n_max, 9);
    EXPECT_EQ(requests.draft().stop.exit_confidence, 0.5f);
    const auto proposal = requests.strategy.propose({.history = requests.history, .n_room = 3});
    EXPECT_EQ(std::get<DraftWithPlan>(proposal.draft).stop.n_max, 3);
    const auto none = requests.strategy.propose({.history = requests.history, .n_room = 0});
    EXPECT_TRUE(std::holds_alternative<PlainStep>(none.draft));
}

TEST(Swift, RecordsEveryPlanThatDraftsAndTheEndOfTheSearch) {
    Requests requests({.window = kWindow, .search = {.max_score = 0.7, .bayes_interval = 3}});
    requests.scores = {0.25, 0.125, 0.75};
    requests.rounds(kFirstSearch + 5);
    const auto decisions = requests.strategy.decisions();
    ASSERT_THAT(decisions, SizeIs(4));
    EXPECT_EQ(decisions[0].token, 1);
    EXPECT_EQ(decisions[0].plan, kFirstPlan);
    EXPECT_EQ(decisions[0].reason, "no search yet: every second layer is skipped");
    EXPECT_EQ(decisions[1].token, kFirstSearch + 1);
    EXPECT_EQ(decisions[1].plan, requests.evaluations[0].plan);
    EXPECT_EQ(decisions[1].reason, "matchness 25 % on 4 tokens, plan 1, chosen at random");
    EXPECT_EQ(decisions[2].token, kFirstSearch + 3);
    EXPECT_EQ(decisions[2].source, requests.evaluations[2].plan);
    EXPECT_EQ(decisions[2].reason, "matchness 75 % on 4 tokens, plan 3, from the optimiser");
    EXPECT_EQ(decisions[3].plan, requests.evaluations[2].plan);
    EXPECT_EQ(decisions[3].reason,
              "the search ends after 3 plans, matchness 75 %: the matchness is good enough");

    requests.begin();
    requests.rounds(1);
    ASSERT_THAT(requests.strategy.decisions(), SizeIs(1));
    EXPECT_EQ(requests.strategy.decisions()[0].reason,
              "the best of 3 plans so far, matchness 75 %");
}

std::string complaint(int n_layers, const std::string& options) {
    test::StrategyRig rig(test::tiny_model_of_layers(n_layers));
    try {
        make_strategy({.strategy = "swift", .settings = parse_settings(options)}, rig.parts());
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(Swift, IsRefusedWhenThereIsNothingToSkip) {
    EXPECT_EQ(complaint(3, ""),
              "`.strategy`: expected a model of 4 layers or more for swift, found 3");
    EXPECT_EQ(complaint(4, "ratio=0.2"),
              "`.settings`: expected a ratio that skips at least 1 of the 4 modules between "
              "the outer layers; found 0.2");
    EXPECT_EQ(complaint(4, ""), "");
}

}  // namespace
}  // namespace knap::swift_swift_test
