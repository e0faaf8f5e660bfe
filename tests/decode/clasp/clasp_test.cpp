#include "decode/clasp/clasp.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forward/plan_text.h"
#include "support/fake_round.h"

namespace knap::clasp_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kLayers = 4;
constexpr int kEmbd = 2;
constexpr int kPrompt = 20;

// A request whose searches return prepared plans in turn.
class Request {
  public:
    explicit Request(const ClaspOptions& options)
        : strategy_(options, kLayers, kEmbd, [this](std::span<const float> streams, int row) {
              searched.push_back({{streams.begin(), streams.end()}, row});
              return finds_nothing
                         ? std::nullopt
                         : std::optional(SkippedLayers{
                               .plan = parse_plan(plans[searched.size() % plans.size()], kLayers),
                               .cosine = 0.91234,
                           });
          }) {
        begin();
    }

    void begin() {
        history_.assign(kPrompt, 1);
        strategy_.begin({.prompt = history_});
        history_.push_back(2);
    }

    // Drafts three tokens, of which `n_accepted` are accepted.
    Proposal round(int n_accepted = 1) {
        const Proposal proposal = strategy_.propose({.history = history_, .n_room = 8});
        const test::FakeRound fake({.row = static_cast<int>(history_.size()) - 1,
                                    .n_drafted = 3,
                                    .n_accepted = n_accepted,
                                    .n_embd = kEmbd,
                                    .n_streams = static_cast<int>(proposal.captures.size())});
        strategy_.observe(fake.outcome());
        history_.resize(history_.size() + static_cast<std::size_t>(n_accepted) + 1, 3);
        return proposal;
    }

    std::string plan_of(const Proposal& proposal) {
        return to_string(*std::get<DraftWithPlan>(proposal.draft).plan);
    }
    std::span<const Decision> decisions() const { return strategy_.decisions(); }

    struct Searched {
        std::vector<float> streams;
        int row;
    };
    std::vector<Searched> searched;
    std::vector<const char*> plans = {"l1=skip", "l2=skip"};
    bool finds_nothing = false;

  private:
    ClaspStrategy strategy_;
    std::vector<Token> history_;
};

TEST(Clasp, SearchesAfterTheFirstRoundAndEveryInterval) {
    Request request({.n_skipped = 1, .interval = 3});
    std::vector<std::string> plans;
    for (int round = 1; round <= 8; ++round) {
        const Proposal proposal = request.round();
        plans.push_back(request.plan_of(proposal));
        EXPECT_EQ(proposal.captures.empty(), round % 3 != 1) << round;
    }
    EXPECT_THAT(plans, ElementsAre("full", "l2=skip", "l2=skip", "l2=skip", "l1=skip", "l1=skip",
                                   "l1=skip", "l2=skip"));
    EXPECT_THAT(request.decisions(), SizeIs(3));
}

TEST(Clasp, SearchesEveryRoundWhenTheIntervalIsOne) {
    Request request({.n_skipped = 1, .interval = 1});
    for (int round = 1; round <= 4; ++round) {
        request.round();
    }
    EXPECT_THAT(request.searched, SizeIs(3)) << "the last one waits for the next round";
}

// On the row of the last accepted draft, or of the pending token when none was accepted.
TEST(Clasp, SearchesOnTheLastAcceptedToken) {
    for (const int n_accepted : {0, 1, 3}) {
        Request request({.n_skipped = 1, .interval = 2});
        const Proposal first = request.round(n_accepted);
        EXPECT_THAT(first.captures, ElementsAre(0, 2, 4, 6, 8));
        request.round();
        ASSERT_THAT(request.searched, SizeIs(1));
        const int row = kPrompt + n_accepted;
        EXPECT_EQ(request.searched[0].row, row);
        ASSERT_THAT(request.searched[0].streams, SizeIs((kLayers + 1) * kEmbd));
        for (int stream = 0; stream <= kLayers; ++stream) {
            for (int channel = 0; channel < kEmbd; ++channel) {
                EXPECT_EQ(
                    request.searched[0].streams[static_cast<std::size_t>(stream * kEmbd + channel)],
                    test::stream_value(row, stream, channel));
            }
        }
    }
}

TEST(Clasp, StartsEveryRequestWithTheWholeModel) {
    Request request({.n_skipped = 1, .interval = 2});
    request.round();
    request.round();
    request.begin();
    EXPECT_EQ(request.plan_of(request.round()), "full");
    EXPECT_THAT(request.searched, SizeIs(1)) << "what the last request left is forgotten";
    EXPECT_THAT(request.decisions(), IsEmpty());
}

TEST(Clasp, CancelledSearchChangesNothing) {
    Request request({.n_skipped = 1, .interval = 1});
    request.finds_nothing = true;
    request.round();
    EXPECT_EQ(request.plan_of(request.round()), "full");
}

TEST(Clasp, TakesDraftLengthAndExitConfidenceFromItsOptions) {
    Request request({.n_skipped = 1, .draft_max = 5, .exit_confidence = 0.7f});
    const StopRule stop = std::get<DraftWithPlan>(request.round().draft).stop;
    EXPECT_EQ(stop.n_max, 5);
    EXPECT_EQ(stop.exit_confidence, 0.7f);
    EXPECT_EQ(stop.confidence_of, ConfidenceOf::drafted);
}

TEST(ClaspOptions, SkipAsManyLayersAsThePublishedComparison) {
    EXPECT_EQ(clasp_skipped_layers(16), 4);
    EXPECT_EQ(clasp_skipped_layers(28), 8);
    EXPECT_EQ(clasp_skipped_layers(36), 8);
    EXPECT_EQ(clasp_skipped_layers(64), 20);
    EXPECT_EQ(clasp_skipped_layers(30), 8) << "a quarter, rounded";
    EXPECT_EQ(clasp_skipped_layers(2), 1);
}

TEST(ClaspOptions, FollowTheCodeOrThePaper) {
    const auto read = [](const char* text) {
        return read_clasp_options({.strategy = "clasp", .settings = parse_settings(text)}, 32);
    };
    EXPECT_EQ(read("").n_skipped, 8);
    EXPECT_EQ(read("").interval, 64);
    EXPECT_EQ(read("layers=paper").n_skipped, 16);
    EXPECT_EQ(read("layers=31").n_skipped, 31);
    EXPECT_EQ(read("interval=paper").interval, 128);
    EXPECT_EQ(read("interval=7").interval, 7);
    const ClaspOptions flags = read_clasp_options(
        {.strategy = "clasp", .draft_max = 3, .settings = {{"exit-confidence", "0.2"}}}, 32);
    EXPECT_EQ(flags.draft_max, 3);
    EXPECT_EQ(flags.exit_confidence, 0.2f);
}

TEST(ClaspOptions, RefuseLayerCountsThatTheModelCannotSkip) {
    const auto complaint = [](const char* text, int n_layers) -> std::string {
        try {
            read_clasp_options({.strategy = "clasp", .settings = parse_settings(text)}, n_layers);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(complaint("layers=32", 32),
              "`.settings`: expected layers=1..31 (at least one layer must run), found "
              "32");
    EXPECT_EQ(complaint("layers=0", 32),
              "`.settings`: expected layers=code|paper|1..1000, found '0'");
}

}  // namespace
}  // namespace knap::clasp_test
