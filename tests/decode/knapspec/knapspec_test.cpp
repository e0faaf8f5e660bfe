#include "decode/knapspec/knapspec.h"

#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forward/plan_text.h"
#include "support/fake_machine.h"
#include "support/fake_round.h"
#include "support/strategy_rig.h"

namespace knap::test::knapspec_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kLayers = 4;

CostProfile profile_of(double row_price) {
    const FakeMachine machine = long_context_machine(kLayers, row_price);
    return machine.profile(profile_probes(machine.layer_classes, 8192, 16));
}

constexpr double kCheapRow = 0.05;
constexpr double kWholeStep = 1;

// A strategy with simulated rounds: the test sets what is accepted and how long it takes.
class World {
  public:
    World(const std::string& settings, const CostProfile& profile) {
        rig_.profile = profile;
        StrategyParts parts = rig_.parts();
        parts.measure = [](const Probe&) {
            return std::nullopt;
        };  // the real clock has no part in it
        strategy_ =
            build_knapspec({.strategy = "knapspec", .settings = parse_settings(settings)}, parts);
    }

    void begin(std::vector<Token> prompt) {
        history_ = std::move(prompt);
        strategy_->begin({.prompt = history_});
        elapsed_ms_ = 100;
    }

    Proposal propose(int n_room = kMaxDraft) {
        return strategy_->propose({.history = history_,
                                   .n_room = n_room,
                                   .elapsed_ms = elapsed_ms_,
                                   .n_expected = 1000,
                                   .load = load});
    }

    // A round in which `share` of the drafts are accepted. It takes as long as on the fake machine,
    // times `time_factor`. A forced one is not the strategy's.
    Proposal round(double share, double time_factor = 1, bool is_forced = false) {
        const Proposal proposal = propose();
        int n_drafted = 0;
        double draft_ms = 0;
        const int n_context = static_cast<int>(history_.size()) - 1;
        if (const auto* copy = std::get_if<DraftTokens>(&proposal.draft)) {
            n_drafted = copy->tree->n_nodes();
        } else if (const auto* how = std::get_if<DraftWithPlan>(&proposal.draft)) {
            n_drafted = how->stop.n_max;
            draft_ms = n_drafted * machine.ms({.plan = *how->plan, .n_context = n_context});
        }
        const int n_others = static_cast<int>(load.others.n_rows);
        const FakeRound fake({.row = n_context,
                              .n_drafted = n_drafted,
                              .n_accepted = static_cast<int>(share * n_drafted),
                              .draft_ms = draft_ms * time_factor,
                              .verify_ms = machine.ms({.plan = ModulePlan(kLayers),
                                                       .n_context = n_context,
                                                       .n_rows = n_drafted + 1 + n_others}) *
                                           time_factor,
                              .pass = {.n_others = n_others, .n_other_tokens = n_others},
                              .is_forced = is_forced});
        RoundOutcome outcome = fake.outcome();
        outcome.was_disturbed = was_disturbed;
        strategy_->observe(outcome);
        elapsed_ms_ += outcome.draft_ms + outcome.verify_ms;
        history_.insert(history_.end(), outcome.emitted.begin(), outcome.emitted.end());
        return proposal;
    }

    std::string last_reason() const {
        return strategy_->decisions().empty() ? "" : strategy_->decisions().back().reason;
    }
    std::span<const Decision> decisions() const { return strategy_->decisions(); }

    FakeMachine machine = long_context_machine(kLayers, kCheapRow);
    double elapsed_ms_ = 0;
    Load load;
    bool was_disturbed = false;  // every round

  private:
    StrategyRig rig_;
    std::vector<Token> history_;
    std::unique_ptr<Strategy> strategy_;
};

CostProfile cheap_rows() {
    return profile_of(kCheapRow);
}

std::vector<Token> text(int n) {
    return random_tokens(n, 280, 1);
}

bool is_plain(const Proposal& proposal) {
    return std::holds_alternative<PlainStep>(proposal.draft);
}

constexpr const char* kPlansOnly = "copies=off,budget=0";
constexpr const char* kCopiesOnly = "plans=off,budget=0";

TEST(Knapspec, DraftsWithAWindowWhenVerifyingIsCheap) {
    World world(kPlansOnly, cheap_rows());
    world.begin(text(6000));
    const Proposal proposal = world.propose();
    const auto* how = std::get_if<DraftWithPlan>(&proposal.draft);
    ASSERT_NE(how, nullptr);
    EXPECT_EQ(distinct_windows(*how->plan).size(), 1u);
    EXPECT_TRUE(how->stop.marginal.has_value());
    ASSERT_EQ(world.decisions().size(), 1u);
    EXPECT_EQ(world.decisions()[0].token, 0);
    EXPECT_GT(world.decisions()[0].predicted, 1.03);
    EXPECT_EQ(world.decisions()[0].plan, to_string(*how->plan));
    EXPECT_EQ(world.decisions()[0].source, world.decisions()[0].plan);
}

TEST(Knapspec, DoesNotDraftWhenEveryRowCostsAStep) {
    World world(kPlansOnly, profile_of(kWholeStep));
    world.begin(text(6000));
    EXPECT_TRUE(is_plain(world.propose()));
    EXPECT_THAT(world.last_reason(), HasSubstr("no plan can pay"));
    EXPECT_EQ(world.decisions()[0].source, "plain");
    EXPECT_EQ(world.decisions()[0].plan, "");
}

Load load_of(int n_others) {
    return {.n_sessions = n_others,
            .others = {.n_rows = double(n_others), .n_tokens = double(n_others)}};
}

// The passes of a draft keep all others waiting.
TEST(Knapspec, DoesNotDraftWithAPlanBesideManyOthers) {
    World world(kPlansOnly, cheap_rows());
    world.begin(text(6000));
    EXPECT_FALSE(is_plain(world.round(1)));
    world.load = load_of(16);
    EXPECT_TRUE(is_plain(world.round(1)));
    EXPECT_THAT(world.last_reason(), HasSubstr("no plan can pay"));
    world.load = {};
    EXPECT_FALSE(is_plain(world.round(1)));
}

// Where every row costs half a step, two rows for two tokens take less than two steps. Beside many
// others a row is half a step more, and a token no more than that.
TEST(Knapspec, CopiesAreShorterBesideOthers) {
    constexpr double kHalfStep = 0.5;
    World world(kCopiesOnly, profile_of(kHalfStep));
    world.machine = long_context_machine(kLayers, kHalfStep);
    std::vector<Token> prompt;
    for (int i = 0; i < 60; ++i) {
        prompt.push_back(token_at(i, 7));
    }
    world.begin(prompt);
    const auto n_copied = [&] {
        const Proposal proposal = world.round(1);
        const auto* copy = std::get_if<DraftTokens>(&proposal.draft);
        return copy == nullptr ? 0 : copy->tree->n_nodes();
    };
    for (int i = 0; i < 20; ++i) {
        EXPECT_GT(n_copied(), 0);
    }
    const int n_alone = n_copied();
    world.load = load_of(40);
    const int n_beside_others = n_copied();
    EXPECT_LT(n_beside_others, n_alone);
}

TEST(Knapspec, DecisionNamesItsPlanAndTheOtherDraftSources) {
    World world("budget=0", cheap_rows());
    world.begin(text(6000));
    world.propose();
    ASSERT_EQ(world.decisions().size(), 1u);
    const Decision& decision = world.decisions()[0];
    EXPECT_THAT(decision.plan, StartsWith("a=w16+"));
    EXPECT_EQ(decision.source, decision.plan + ", copies where they pay");
}

TEST(Knapspec, ContextShorterThanAnyWindowIsDecodedPlainly) {
    World world(kPlansOnly, cheap_rows());
    world.begin(text(20));
    EXPECT_TRUE(is_plain(world.propose()));
    EXPECT_THAT(world.last_reason(), HasSubstr("too short for windows"));
}

TEST(Knapspec, LosingPlanIsSuspendedAndTriedAgainLater) {
    World world("copies=off,budget=0,windows=64", cheap_rows());
    world.begin(text(6000));
    int n_rounds = 0;
    while (!is_plain(world.round(0))) {
        ASSERT_LT(++n_rounds, 40) << "a plan none of whose drafts is accepted must not go on";
    }
    EXPECT_THAT(world.last_reason(), HasSubstr("suspended"));
    int n_plain = 0;
    while (is_plain(world.round(1))) {
        ASSERT_LT(++n_plain, 400) << "a text may change: it is tried again";
    }
    EXPECT_GE(n_plain, 48);
}

TEST(Knapspec, OneBadRoundDoesNotSuspendAPlan) {
    World world("copies=off,budget=0,windows=64", cheap_rows());
    world.begin(text(6000));
    EXPECT_FALSE(is_plain(world.round(0, /*time_factor=*/3)));
    EXPECT_FALSE(is_plain(world.propose()));
    EXPECT_EQ(world.decisions().size(), 1u) << "drafts are often rejected";
}

// A grammar drafts in place of the plan; what becomes of that says nothing about the plan.
TEST(Knapspec, ForcedDraftsTeachNothingAboutPlans) {
    World world("copies=off,budget=0,windows=64", cheap_rows());
    world.begin(text(6000));
    for (int i = 0; i < 40; ++i) {
        EXPECT_FALSE(is_plain(world.round(0, 1, /*is_forced=*/true))) << i;
    }
}

TEST(Knapspec, DraftsGetLongerWhenAccepted) {
    World world(kPlansOnly, cheap_rows());
    world.begin(text(6000));
    const Proposal first = world.round(1);
    Proposal last;
    for (int i = 0; i < 100; ++i) {
        last = world.round(1);
    }
    EXPECT_GT(std::get<DraftWithPlan>(last.draft).stop.n_max,
              std::get<DraftWithPlan>(first.draft).stop.n_max);
    EXPECT_GT(world.decisions().back().measured, 1);
}

// The text of fake rounds repeats after seven tokens.
TEST(Knapspec, CopiesRepeatedText) {
    World world(kCopiesOnly, cheap_rows());
    std::vector<Token> prompt;
    for (int i = 0; i < 60; ++i) {
        prompt.push_back(token_at(i, 7));
    }
    world.begin(prompt);
    const Proposal proposal = world.round(1);
    const auto* copy = std::get_if<DraftTokens>(&proposal.draft);
    ASSERT_NE(copy, nullptr);
    EXPECT_EQ(copy->tree->token(0), token_at(60, 7));
}

TEST(Knapspec, CopiesNothingWhenNothingRepeats) {
    World world(kCopiesOnly, cheap_rows());
    std::vector<Token> prompt(200);
    std::iota(prompt.begin(), prompt.end(), 0);
    world.begin(prompt);
    EXPECT_TRUE(is_plain(world.propose()));
}

TEST(Knapspec, CopyThatCannotPayIsNotDrafted) {
    World world(kCopiesOnly, profile_of(kWholeStep));
    world.begin(std::vector<Token>(100, 5));
    EXPECT_TRUE(is_plain(world.propose()));
}

TEST(Knapspec, StartsPlainWithoutAProfile) {
    World world("budget=0", {.layer_classes = {0, 0, 0, 0}});
    world.begin(std::vector<Token>(6000, 5));
    for (int i = 0; i < 30; ++i) {
        ASSERT_TRUE(is_plain(world.round(1))) << i;
    }
    EXPECT_THAT(world.last_reason(), HasSubstr("not been measured yet"));
}

// The text of fake rounds repeats, so copies are always right. One that takes forty times as long
// as it should must not be the last.
TEST(Knapspec, CopiesAreTriedAgainWhereOneWasDisturbed) {
    World world("plans=off", {.layer_classes = {0, 0, 0, 0}});
    world.was_disturbed = true;
    std::vector<Token> prompt;
    for (int i = 0; i < 600; ++i) {
        prompt.push_back(token_at(i, 7));
    }
    world.begin(prompt);
    int n_copies = 0;
    for (int i = 0; i < 40; ++i) {
        const bool is_copy = !is_plain(world.propose());
        world.round(1, is_copy && n_copies == 0 ? 40 : 1);
        n_copies += is_copy ? 1 : 0;
    }
    EXPECT_GT(n_copies, 20);
}

TEST(Knapspec, StaysWithinTheRoom) {
    World copies(kCopiesOnly, cheap_rows());
    copies.begin(std::vector<Token>(6000, 5));
    EXPECT_TRUE(is_plain(copies.propose(0)));
    const Proposal copied = copies.propose(1);
    ASSERT_TRUE(std::holds_alternative<DraftTokens>(copied.draft));
    EXPECT_EQ(std::get<DraftTokens>(copied.draft).tree->n_nodes(), 1);

    World plans(kPlansOnly, cheap_rows());
    plans.begin(text(6000));
    EXPECT_TRUE(is_plain(plans.propose(0)));
    const Proposal drafted = plans.propose(1);
    ASSERT_TRUE(std::holds_alternative<DraftWithPlan>(drafted.draft));
    EXPECT_EQ(std::get<DraftWithPlan>(drafted.draft).stop.n_max, 1);
}

TEST(Knapspec, RecoversFromAClockThatJumps) {
    World world(kPlansOnly, cheap_rows());
    world.begin(text(6000));
    for (const double factor : {1.0, -1.0, 0.0, 1e15, std::numeric_limits<double>::quiet_NaN(),
                                std::numeric_limits<double>::infinity()}) {
        for (int i = 0; i < 3; ++i) {
            world.round(1, factor);
        }
        world.elapsed_ms_ = factor * 1e6;
    }
    for (int i = 0; i < 20; ++i) {
        world.round(1);
    }
    EXPECT_TRUE(std::holds_alternative<DraftWithPlan>(world.propose().draft));
}

TEST(Knapspec, RequestStartsWithoutDecisions) {
    World world(kPlansOnly, cheap_rows());
    world.begin(text(6000));
    world.round(1);
    ASSERT_FALSE(world.decisions().empty());
    world.begin(text(20));
    EXPECT_TRUE(world.decisions().empty());
    EXPECT_TRUE(is_plain(world.propose()));
}

}  // namespace
}  // namespace knap::test::knapspec_test
