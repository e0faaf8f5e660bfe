#include "decode/del/del.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forward/plan_text.h"
#include "support/fake_round.h"

namespace knap::del_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kLayers = 4;
constexpr int kEmbd = 2;
constexpr int kVocab = 7;
constexpr int kPrompt = 40;

// The strategy's requests, and how to answer them.
struct SourceLog {
    std::vector<std::vector<float>> read;  // the rows of each call
    std::vector<std::pair<std::size_t, int>> prompts;
    // The shadow token of a row of the call. The whole model chooses token_at().
    std::function<ShadowToken(std::size_t row)> answer = [](std::size_t) {
        return ShadowToken{.token = -1, .confidence = 0.5f};
    };
    bool is_cancelled = false;
};

class LoggedSource final : public ShadowSource {
  public:
    explicit LoggedSource(SourceLog& log) : log_(log) {}

    TargetRows last_rows(std::span<const Token> text, int n_rows) override {
        log_.prompts.emplace_back(text.size(), n_rows);
        TargetRows rows{.tokens = std::vector<Token>(2, 1), .choices = {5, 6}};
        for (int stream = 0; stream <= 2 * kLayers; ++stream) {
            rows.streams.emplace_back(2 * kEmbd, static_cast<float>(stream));
        }
        return rows;
    }

    std::vector<ShadowToken> read(std::span<const float> hidden) override {
        log_.read.emplace_back(hidden.begin(), hidden.end());
        std::vector<ShadowToken> shadows;
        for (std::size_t row = 0; row < hidden.size() / kEmbd && !log_.is_cancelled; ++row) {
            shadows.push_back(log_.answer(row));
        }
        return shadows;
    }

  private:
    SourceLog& log_;
};

class Request {
  public:
    explicit Request(const DelOptions& options = {.prompt_rows = 0})
        : strategy_(options, kLayers, kEmbd, std::make_unique<LoggedSource>(log)) {
        begin();
    }

    void begin() {
        history_.assign(kPrompt, 1);
        strategy_.begin({.prompt = history_});
        history_.push_back(2);
    }

    Proposal propose(int n_room = 30) {
        return strategy_.propose({.history = history_, .n_room = n_room});
    }
    void observe(int n_drafted, int n_accepted) {
        const test::FakeRound fake({.row = static_cast<int>(history_.size()) - 1,
                                    .n_drafted = n_drafted,
                                    .n_accepted = n_accepted,
                                    .n_embd = kEmbd,
                                    .n_vocab = kVocab,
                                    .n_streams = kLayers - 1});
        strategy_.observe(fake.outcome());
        history_.resize(history_.size() + static_cast<std::size_t>(n_accepted) + 1, 3);
    }
    // Proposes, then observes a round with these numbers of drafted and accepted tokens.
    const DraftWithPlan round(int n_drafted, int n_accepted) {
        const Proposal proposal = propose();
        observe(n_drafted, n_accepted);
        return std::get<DraftWithPlan>(proposal.draft);
    }
    std::span<const Decision> decisions() const { return strategy_.decisions(); }

    SourceLog log;

  private:
    DelStrategy strategy_;
    std::vector<Token> history_;
};

TEST(Del, CapturesTheStreamsAfterEveryLayerButTheLast) {
    Request request;
    EXPECT_THAT(request.propose().captures, ElementsAre(2, 4, 6));
    EXPECT_THAT(request.propose(0).captures, ElementsAre(2, 4, 6)) << "a plain step teaches, too";
}

TEST(Del, ExitsAfterTheFirstLayerWhenNothingIsKnown) {
    Request request;
    const DraftWithPlan first = request.round(4, 1);
    EXPECT_EQ(to_string(*first.plan), "exit=1");
    EXPECT_EQ(first.stop.n_max, 18);
    EXPECT_EQ(first.stop.exit_confidence, 0) << "no threshold yet: drafting goes on";
}

// The rows of the pending token and of the accepted drafts, after every layer. Later rows belong to
// another text.
TEST(Del, LearnsFromTheRowsBeforeTheFirstRejectedDraft) {
    Request request;
    request.round(4, 2);
    request.propose();
    ASSERT_THAT(request.log.read, SizeIs(1));
    const std::vector<float>& rows = request.log.read[0];
    ASSERT_THAT(rows, SizeIs(3 * 3 * kEmbd));
    for (std::size_t layer = 0; layer < 3; ++layer) {
        for (std::size_t row = 0; row < 3; ++row) {
            EXPECT_EQ(
                rows[(layer * 3 + row) * kEmbd],
                test::stream_value(kPrompt + static_cast<int>(row), static_cast<int>(layer), 0));
        }
    }
}

// Layer 2 predicts the whole model's token at every row.
ShadowToken second_layer_knows(std::size_t row, std::size_t n_rows) {
    const auto layer = row / n_rows;
    const int position = kPrompt + 1 + static_cast<int>(row % n_rows);
    return {layer == 1 ? test::token_at(position, kVocab) : -1, 0.5f};
}

TEST(Del, ExitsWhereTheMostTokensPerLayerAreExpected) {
    Request request;
    request.log.answer = [](std::size_t row) { return second_layer_knows(row, 3); };
    request.round(4, 2);
    EXPECT_EQ(to_string(*request.round(1, 0).plan), "exit=2");
    ASSERT_THAT(request.decisions(), SizeIs(2));
    EXPECT_EQ(request.decisions()[1].plan, "exit=2");
    EXPECT_EQ(request.decisions()[1].reason,
              "layer 2 agrees with the whole model in 100 % of rows, best draft length 17");
    EXPECT_NEAR(request.decisions()[1].predicted, 4 * 18.0 / (4 + 17 * 2), 1e-12);
}

TEST(Del, CanUseTheBestDraftLength) {
    Request request({.prompt_rows = 0, .uses_best_length = true});
    EXPECT_TRUE(std::holds_alternative<PlainStep>(request.propose().draft)) << "0 is best so far";
    request.observe(0, 0);
    request.log.answer = [](std::size_t row) { return second_layer_knows(row, 1); };
    const auto how = std::get<DraftWithPlan>(request.propose().draft);
    EXPECT_EQ(how.stop.n_max, 17);
    EXPECT_FALSE(how.stop.needs_confidence());
}

TEST(Del, StartsFromTheEndOfThePrompt) {
    Request request({.prompt_rows = 32});
    request.propose();
    ASSERT_THAT(request.log.prompts, SizeIs(1));
    EXPECT_EQ(request.log.prompts[0].first, static_cast<std::size_t>(kPrompt));
    EXPECT_EQ(request.log.prompts[0].second, 32);
    ASSERT_THAT(request.log.read, SizeIs(1));
    // Two rows of the streams after modules 2, 4 and 6.
    EXPECT_THAT(request.log.read[0], ElementsAre(2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6));
    request.observe(1, 0);
    request.propose();
    EXPECT_THAT(request.log.prompts, SizeIs(1)) << "once a request";
}

TEST(Del, ForgetsBetweenRequests) {
    Request request;
    request.log.answer = [](std::size_t row) { return second_layer_knows(row, 3); };
    request.round(4, 2);
    request.round(4, 2);
    request.begin();
    EXPECT_EQ(to_string(*request.round(1, 0).plan), "exit=1");
}

TEST(Del, LearnsNothingFromACancelledPass) {
    Request request;
    request.log.is_cancelled = true;
    request.round(4, 2);
    EXPECT_EQ(to_string(*request.round(1, 0).plan), "exit=1");
}

TEST(DelOptions, AreReadFromFlagsAndKeys) {
    const DelOptions read = read_del_options(
        {.strategy = "del",
         .draft_max = 10,
         .settings = {{"stop", "length"}, {"decay", "0.5"}, {"prompt-rows", "0"}}});
    EXPECT_EQ(read.draft_max, 10);
    EXPECT_TRUE(read.uses_best_length);
    EXPECT_EQ(read.decay, 0.5f);
    EXPECT_EQ(read.prompt_rows, 0);
    EXPECT_THROW(read_del_options({.strategy = "del", .settings = {{"decay", "1.1"}}}), Error);
}

}  // namespace
}  // namespace knap::del_test
