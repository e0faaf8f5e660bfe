#include "decode/knapspec_paper/knapspec_paper.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forward/plan_text.h"
#include "support/fake_round.h"

namespace knap::knapspec_paper_knapspec_paper_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kLayers = 4;
constexpr int kEmbd = 2;
constexpr int kVocab = 11;
constexpr int kStreams = 2 * kLayers + 1;
constexpr int kPrompt = 20;

PaperSearchResult found(const char* plan, int draft_length = 5) {
    return {.choice = PaperChoice{.plan = parse_plan(plan, kLayers),
                                  .draft_length = draft_length,
                                  .acceptance = 0.75,
                                  .speedup = 1.25,
                                  .n_candidates = 3},
            .plain_step_ms = 10};
}

PaperSearchResult found_nothing() {
    return {.plain_step_ms = 10};
}

// Returns prepared results, repeating the last one, and records the requests.
struct SearchLog {
    std::vector<PaperSearchResult> results = {found("a1=skip")};
    int max_rows = 1000;
    std::vector<TargetRows> searched;
    std::vector<std::pair<std::size_t, int>> last_rows;  // [call] committed tokens, rows requested
};

class LoggedSearch final : public PaperSearch {
  public:
    explicit LoggedSearch(SearchLog& log) : log_(log) {}

    int max_rows() const override { return log_.max_rows; }
    TargetRows last_rows(std::span<const Token> text, int n_rows) override {
        log_.last_rows.emplace_back(text.size(), n_rows);
        const auto tokens = text.last(static_cast<std::size_t>(n_rows));
        return {.first_row = static_cast<int>(text.size()) - n_rows,
                .tokens = {tokens.begin(), tokens.end()}};
    }
    PaperSearchResult find(const TargetRows& rows) override {
        const std::size_t i = std::min(log_.searched.size(), log_.results.size() - 1);
        log_.searched.push_back(rows);
        return log_.results[i];
    }

  private:
    SearchLog& log_;
};

// A request, round by round, and what the strategy proposed in each round.
class Request {
  public:
    explicit Request(const PaperOptions& options = {}, int interval = 64)
        : strategy(options,
                   {.n_layers = kLayers, .n_embd = kEmbd, .interval = interval},
                   std::make_unique<LoggedSearch>(log)) {
        begin();
    }

    void begin(int n_prompt = kPrompt) {
        history.clear();
        for (int i = 0; i <= n_prompt; ++i) {
            history.push_back(test::token_at(i, kVocab));
        }
        strategy.begin({.prompt = std::span(history).first(history.size() - 1)});
        plans.clear();
        keeping_rounds.clear();
        n_rounds = 0;
        log.searched.clear();
    }

    Proposal propose(int n_room = kMaxDraft) {
        return strategy.propose({.history = history, .n_room = n_room});
    }

    // The strategy drafts as many tokens as it may, of which `n_accepted` are accepted.
    void round(int n_accepted = 1, int n_room = kMaxDraft) {
        ++n_rounds;
        const Proposal proposal = propose(n_room);
        const auto* draft = std::get_if<DraftWithPlan>(&proposal.draft);
        const int n_drafted = draft != nullptr ? draft->stop.n_max : 0;
        plans.push_back(draft != nullptr ? to_string(*draft->plan) : "plain");
        if (!proposal.captures.empty()) {
            keeping_rounds.push_back(n_rounds);
            std::vector<int> all(kStreams);
            std::iota(all.begin(), all.end(), 0);
            EXPECT_TRUE(std::ranges::equal(proposal.captures, all));
        }
        const test::FakeRound done({
            .row = static_cast<int>(history.size()) - 1,
            .n_drafted = n_drafted,
            .n_accepted = std::min(n_accepted, n_drafted),
            .n_embd = kEmbd,
            .n_vocab = kVocab,
            .n_streams = static_cast<int>(proposal.captures.size()),
            .draft_ms = 1,
            .verify_ms = 4,
        });
        const RoundOutcome outcome = done.outcome();
        history.insert(history.end(), outcome.emitted.begin(), outcome.emitted.end());
        strategy.observe(outcome);
    }

    // Runs rounds until the next proposal follows a search.
    void run_to_search() {
        while (n_rounds % 64 != 6) {
            round();
        }
    }

    std::vector<int> search_rounds(int n) {
        std::vector<int> rounds;
        while (n_rounds < n) {
            const std::size_t before = log.searched.size();
            round();
            if (log.searched.size() > before) {
                rounds.push_back(n_rounds - 1);  // it belongs to the end of the previous round
            }
        }
        return rounds;
    }

    DraftWithPlan draft(int n_room = kMaxDraft) {
        return std::get<DraftWithPlan>(propose(n_room).draft);
    }

    SearchLog log;
    KnapspecPaperStrategy strategy;
    std::vector<Token> history;
    std::vector<std::string> plans;   // of each round
    std::vector<int> keeping_rounds;  // that requested streams
    int n_rounds = 0;
};

TEST(KnapspecPaper, KeepsRowsOfFiveRoundsAndSearchesAfterTheSixth) {
    Request request;
    EXPECT_THAT(request.search_rounds(140), ElementsAre(6, 70, 134));
    EXPECT_THAT(request.keeping_rounds,
                ElementsAre(2, 3, 4, 5, 6, 66, 67, 68, 69, 70, 130, 131, 132, 133, 134));
}

TEST(KnapspecPaper, ShortestIntervalSearchesEverySevenRounds) {
    Request request({}, kShortestInterval);
    EXPECT_THAT(request.search_rounds(30), ElementsAre(6, 13, 20, 27));
    EXPECT_THAT(request.keeping_rounds, ElementsAre(2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 16, 17, 18,
                                                    19, 20, 23, 24, 25, 26, 27, 30));
}

TEST(KnapspecPaper, TheWholeModelDraftsUntilTheFirstSearch) {
    Request request;
    request.log.results = {found("a1=skip"), found("m2=skip")};
    while (request.n_rounds < 72) {
        request.round();
    }
    for (std::size_t i = 0; i < request.plans.size(); ++i) {
        const std::size_t round = i + 1;
        EXPECT_EQ(request.plans[i], round <= 6    ? "full"
                                    : round <= 70 ? "a1=skip"
                                                  : "m2=skip")
            << round;
    }
}

TEST(KnapspecPaper, SearchesOnTheLastCommittedPositionsInOrder) {
    Request request;
    // The rows come from rounds 2 to 6, with none, some and all drafts accepted.
    const std::vector<int> accepted = {3, 0, 2, 10, 1, 5};
    for (const int n : accepted) {
        request.round(n);
    }
    request.propose();
    ASSERT_THAT(request.log.searched, SizeIs(1));
    const TargetRows& rows = request.log.searched.front();
    const int n_committed = static_cast<int>(request.history.size()) - 1;
    EXPECT_EQ(rows.n_rows(), 5 + 0 + 2 + 10 + 1 + 5);
    EXPECT_EQ(rows.first_row + rows.n_rows(), n_committed);
    ASSERT_THAT(rows.streams, SizeIs(kStreams));
    for (int i = 0; i < rows.n_rows(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const int row = rows.first_row + i;
        EXPECT_EQ(rows.tokens[at], request.history[static_cast<std::size_t>(row)]);
        EXPECT_EQ(rows.choices[at], request.history[static_cast<std::size_t>(row) + 1]);
        for (int stream = 0; stream < kStreams; ++stream) {
            EXPECT_EQ(rows.streams[static_cast<std::size_t>(stream)][at * kEmbd + 1],
                      test::stream_value(row, stream, 1));
        }
    }
}

TEST(KnapspecPaper, EverySearchHasItsOwnRows) {
    Request request({}, kShortestInterval);
    request.search_rounds(14);
    ASSERT_THAT(request.log.searched, SizeIs(2));
    EXPECT_EQ(request.log.searched[1].n_rows(), 10) << "five rounds of two rows";
}

TEST(KnapspecPaper, OldestRowsAreDroppedBeyondWhatASearchHolds) {
    Request request;
    request.log.max_rows = 4;
    request.run_to_search();
    request.propose();
    const TargetRows& rows = request.log.searched.front();
    EXPECT_EQ(rows.n_rows(), 4);
    EXPECT_EQ(rows.first_row + 4, static_cast<int>(request.history.size()) - 1);
}

TEST(KnapspecPaper, DraftsTenTokensAndExitsBelowSeventyPercent) {
    Request request;
    const DraftWithPlan draft = request.draft();
    EXPECT_EQ(draft.stop.n_max, 10);
    EXPECT_EQ(draft.stop.exit_confidence, 0.7f);
    EXPECT_EQ(draft.stop.confidence_of, ConfidenceOf::drawn);
    EXPECT_FALSE(draft.stop.marginal);
    EXPECT_EQ(draft.width, 1);
    EXPECT_THAT(draft.guess, IsEmpty());
}

TEST(KnapspecPaper, RoomLimitsDraftsAndPlainRoundsCount) {
    Request request;
    EXPECT_EQ(request.draft(3).stop.n_max, 3);
    request.begin();
    for (int i = 0; i < 6; ++i) {
        request.round(0, /*n_room=*/0);
    }
    EXPECT_THAT(request.plans, ::testing::Each("plain"));
    request.round();
    ASSERT_THAT(request.log.searched, SizeIs(1));
    EXPECT_EQ(request.log.searched.front().n_rows(), 5) << "one row a round";
}

TEST(KnapspecPaper, WithoutAnyCandidateTheWholeModelDraftsUntilTheNextSearch) {
    Request request({}, kShortestInterval);
    request.log.results = {found("a1=skip"), found_nothing(), found("m2=skip")};
    request.search_rounds(21);
    EXPECT_EQ(request.plans[12], "a1=skip");
    EXPECT_EQ(request.plans[13], "full");
    EXPECT_EQ(request.plans[19], "full");
    EXPECT_EQ(request.plans[20], "m2=skip");
    const auto decisions = request.strategy.decisions();
    ASSERT_THAT(decisions, SizeIs(4));
    EXPECT_THAT(decisions[2].reason, HasSubstr("no plan survived"));
    EXPECT_EQ(decisions[2].source, "full");
    EXPECT_EQ(decisions[2].predicted, 1);
}

TEST(KnapspecPaper, CancelledSearchChangesNothing) {
    Request request({}, kShortestInterval);
    request.log.results = {found("a1=skip"), {.is_cancelled = true}};
    request.search_rounds(14);
    EXPECT_EQ(request.plans.back(), "a1=skip");
    EXPECT_THAT(request.strategy.decisions(), SizeIs(2));
}

TEST(KnapspecPaper, RequestThatEndsWithTheSixthRoundIsNotSearched) {
    Request request;
    request.run_to_search();
    EXPECT_THAT(request.log.searched, IsEmpty());
}

TEST(KnapspecPaper, CarriesNothingToTheNextRequest) {
    Request request;
    request.log.results = {found("a1=skip")};
    request.run_to_search();
    request.round();
    EXPECT_EQ(request.plans.back(), "a1=skip");
    request.begin(/*n_prompt=*/3);
    EXPECT_THAT(request.strategy.decisions(), IsEmpty());
    EXPECT_THAT(request.search_rounds(8), ElementsAre(6));
    EXPECT_EQ(request.plans[0], "full");
    EXPECT_EQ(request.log.searched.front().n_rows(), 10);

    // Also when the previous request ended while rows were being kept.
    request.begin();
    for (int i = 0; i < 4; ++i) {
        request.round();
    }
    request.begin(/*n_prompt=*/7);
    EXPECT_THAT(request.search_rounds(8), ElementsAre(6));
    EXPECT_EQ(request.log.searched.front().n_rows(), 10);
}

TEST(KnapspecPaper, BestLengthOfAPlanDoesNotLimitDrafts) {
    for (const int best : {0, 3, 17}) {
        Request request;
        request.log.results = {found("a1=skip", best)};
        request.run_to_search();
        EXPECT_EQ(request.draft().stop.n_max, 10) << "best length " << best;
    }
}

TEST(KnapspecPaper, OptionsReachTheStopRule) {
    Request request({.draft_max = 4, .exit_confidence = 0, .exits_by_most_probable = true});
    const DraftWithPlan draft = request.draft();
    EXPECT_EQ(draft.stop.n_max, 4);
    EXPECT_FALSE(draft.stop.needs_confidence());
    EXPECT_EQ(draft.stop.confidence_of, ConfidenceOf::most_probable);
}

TEST(KnapspecPaper, CanAlsoSearchOnTheEndOfThePrompt) {
    for (const int n_prompt : {1, 63, 64, 200}) {
        Request request({.starts_on_prompt = true});
        request.begin(n_prompt);
        request.log.results = {found("a1=skip"), found("m2=skip")};
        EXPECT_THAT(request.search_rounds(7), ElementsAre(0, 6));
        EXPECT_THAT(request.log.last_rows, ElementsAre(std::pair(static_cast<std::size_t>(n_prompt),
                                                                 std::min(n_prompt, 64))));
        EXPECT_EQ(request.plans.front(), "a1=skip") << "round 1 has a plan";
        EXPECT_EQ(request.plans.back(), "m2=skip");
        request.log.last_rows.clear();
    }
    Request request;
    request.round();
    EXPECT_THAT(request.log.last_rows, IsEmpty()) << "unless asked for it does not";
}

TEST(KnapspecPaper, RecordsDecisionsAndTheirOutcomes) {
    Request request;
    request.run_to_search();
    request.round(3);
    const auto decisions = request.strategy.decisions();
    ASSERT_THAT(decisions, SizeIs(2));
    EXPECT_EQ(decisions[0].token, 1);
    EXPECT_EQ(decisions[0].source, "full");
    EXPECT_THAT(decisions[0].reason, HasSubstr("no search yet"));
    EXPECT_EQ(decisions[0].predicted, 1);
    // Six rounds of two tokens in 5 ms each; a plain step takes 10 ms.
    EXPECT_DOUBLE_EQ(decisions[0].measured, 4);
    EXPECT_EQ(decisions[1].token, 13);
    EXPECT_EQ(decisions[1].source, "a1=skip");
    EXPECT_EQ(decisions[1].plan, "a1=skip");
    EXPECT_EQ(decisions[1].reason, "best of 3 plans: 75 % of 10 rows agree, best draft length 5");
    EXPECT_EQ(decisions[1].predicted, 1.25);
    EXPECT_DOUBLE_EQ(decisions[1].measured, 8) << "one round of four tokens";
}

}  // namespace
}  // namespace knap::knapspec_paper_knapspec_paper_test
