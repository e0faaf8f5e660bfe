#include "runtime/scheduling/pass_picker.h"

#include <deque>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_batch_runner.h"

namespace knap::pass_picker_test {
namespace {

using test::TestRun;
using ::testing::ElementsAre;
using Part = PassPick::Part;

constexpr PassLimits kCpu{.max_rows = 512, .max_shared_rows = 512, .divides_prompts = true};
constexpr PassLimits kGpu{.max_rows = 512, .max_shared_rows = 4, .divides_prompts = false};

// What waits, in order.
class Waiting {
  public:
    Waiting& decode(int n_rows, const ModulePlan* plan = nullptr) {
        return add(n_rows, PassKind::decode, plan);
    }
    Waiting& prompt(int n_rows) { return add(n_rows, PassKind::prompt, nullptr); }
    Waiting& work() {
        waiting_.push_back(nullptr);
        return *this;
    }
    Waiting& add(int n_rows, PassKind kind, const ModulePlan* plan) {
        waiting_.push_back(&runs_.emplace_back(n_rows, kind, plan).run);
        return *this;
    }
    TestRun& back() { return runs_.back(); }
    const std::vector<const RowRun*>& list() const { return waiting_; }

    PassPick pick(const PickRules& rules) const {
        PassPick pick;
        pick_pass(waiting_, rules, pick);
        return pick;
    }

  private:
    std::deque<TestRun> runs_;
    std::vector<const RowRun*> waiting_;
};

TEST(PassPicker, NothingWaits) {
    const PassPick pick = Waiting().pick({kCpu});
    EXPECT_TRUE(pick.parts.empty());
}

TEST(PassPicker, EveryRunOfTheGroupJoinsTheOldest) {
    const ModulePlan draft = early_exit_plan(4, 2);
    const ModulePlan same_draft = early_exit_plan(4, 2);
    const ModulePlan whole(4);
    const Waiting waiting =
        std::move(Waiting().decode(1, &draft).decode(5, &whole).decode(2, &same_draft));
    EXPECT_THAT(waiting.pick({kCpu}).parts, ElementsAre(Part{0, 1}, Part{2, 2}));
}

TEST(PassPicker, WorkGoesAlone) {
    Waiting waiting;
    const PassPick pick = waiting.work().decode(1).decode(1).pick({kCpu});
    EXPECT_THAT(pick.parts, ElementsAre(Part{0, 0}));
    EXPECT_TRUE(pick.is_full);
    EXPECT_THAT(Waiting().decode(1).work().decode(1).pick({kCpu}).parts,
                ElementsAre(Part{0, 1}, Part{2, 1}));
}

TEST(PassPicker, RunsWithABankGoAlone) {
    const std::vector<int> rows{0};
    Waiting waiting;
    waiting.decode(1);
    waiting.back().run.request.bank.hidden = rows;
    EXPECT_THAT(waiting.decode(1).pick({kCpu}).parts, ElementsAre(Part{0, 1}));
}

TEST(PassPicker, DecodingRowsGoBeforeOlderPrompts) {
    Waiting waiting;
    waiting.decode(4).prompt(600).decode(8);
    EXPECT_THAT(waiting.pick({kCpu}).parts, ElementsAre(Part{0, 4}, Part{2, 8}, Part{1, 500}));
}

TEST(PassPicker, TheOldestRunIsAPartEvenWithoutRoom) {
    Waiting waiting;
    waiting.prompt(600).decode(300).decode(212).decode(211);
    // One row is the prompt's, so the second run does not fit but the third does.
    EXPECT_THAT(waiting.pick({kCpu}).parts, ElementsAre(Part{0, 1}, Part{1, 300}, Part{3, 211}));
}

TEST(PassPicker, PromptsShareWhatIsLeftOldestFirst) {
    Waiting waiting;
    waiting.decode(12).prompt(300).prompt(400).prompt(7);
    EXPECT_THAT(waiting.pick({kCpu}).parts, ElementsAre(Part{0, 12}, Part{1, 300}, Part{2, 200}));
}

TEST(PassPicker, RowsOfPromptsAreBounded) {
    Waiting waiting;
    waiting.decode(1).prompt(10).prompt(400).prompt(7);
    EXPECT_THAT(waiting.pick({kCpu, 16}).parts, ElementsAre(Part{0, 1}, Part{1, 10}, Part{2, 6}));
    EXPECT_THAT(Waiting().prompt(400).pick({kCpu, 16}).parts, ElementsAre(Part{0, 16}));
    EXPECT_THAT(Waiting().prompt(400).decode(1).pick({kCpu, 16}).parts,
                ElementsAre(Part{0, 16}, Part{1, 1}));
    EXPECT_THAT(Waiting().prompt(400).prompt(400).pick({kCpu, 1}).parts, ElementsAre(Part{0, 1}));
}

TEST(PassPicker, APromptAloneHasTheRowsOfALargePass) {
    const PassLimits limits{.max_rows = 512, .max_shared_rows = 64, .divides_prompts = true};
    EXPECT_THAT(Waiting().prompt(600).pick({limits}).parts, ElementsAre(Part{0, 512}));
    EXPECT_THAT(Waiting().prompt(600).decode(2).pick({limits}).parts,
                ElementsAre(Part{0, 62}, Part{1, 2}));
}

TEST(PassPicker, WholePromptsGoAloneOrFit) {
    EXPECT_THAT(Waiting().prompt(400).decode(1).pick({kGpu, 16}).parts, ElementsAre(Part{0, 400}));
    EXPECT_THAT(Waiting().decode(1).prompt(400).prompt(3).pick({kGpu}).parts,
                ElementsAre(Part{0, 1}, Part{2, 3}));
    EXPECT_THAT(Waiting().decode(1).prompt(3).pick({kGpu, 2}).parts, ElementsAre(Part{0, 1}));
    EXPECT_THAT(Waiting().prompt(2).prompt(2).pick({kGpu, 3}).parts, ElementsAre(Part{0, 2}));
}

TEST(PassPicker, SmallPassesAreFilledInOrder) {
    EXPECT_THAT(Waiting().decode(2).decode(3).decode(1).decode(1).pick({kGpu}).parts,
                ElementsAre(Part{0, 2}, Part{2, 1}, Part{3, 1}));
    EXPECT_THAT(Waiting().decode(7).decode(1).pick({kGpu}).parts, ElementsAre(Part{0, 7}));
}

TEST(PassPicker, EveryRunGoesAloneWhereNothingMayBeShared) {
    for (const bool divides : {false, true}) {
        const PassLimits limits{.max_rows = 8, .max_shared_rows = 1, .divides_prompts = divides};
        EXPECT_THAT(Waiting().decode(1).decode(1).pick({limits}).parts, ElementsAre(Part{0, 1}));
        EXPECT_THAT(Waiting().prompt(6).decode(1).pick({limits}).parts, ElementsAre(Part{0, 6}));
        EXPECT_TRUE(Waiting().decode(1).pick({limits}).is_full);
    }
}

TEST(PassPicker, APassIsFullWithoutRoomForADecodingRow) {
    EXPECT_FALSE(Waiting().decode(3).pick({kGpu}).is_full);
    EXPECT_TRUE(Waiting().decode(3).decode(1).pick({kGpu}).is_full);
    EXPECT_TRUE(Waiting().decode(6).pick({kGpu}).is_full);
    EXPECT_TRUE(Waiting().prompt(400).pick({kGpu}).is_full);
    // A prompt that may be divided gives its rows to those who decode.
    EXPECT_FALSE(Waiting().prompt(600).pick({kCpu}).is_full);
    EXPECT_TRUE(Waiting().prompt(600).decode(511).pick({kCpu}).is_full);
}

// Over random queues: what a pass may look like.
TEST(PassPicker, RandomPassesKeepTheRules) {
    std::mt19937 random(7);
    const auto draw = [&](int from, int to) {
        return std::uniform_int_distribution<int>(from, to)(random);
    };
    const ModulePlan plans[] = {ModulePlan(4), early_exit_plan(4, 2)};
    for (int repeat = 0; repeat < 2000; ++repeat) {
        Waiting waiting;
        const int n_waiting = draw(1, 8);
        for (int i = 0; i < n_waiting; ++i) {
            waiting.add(draw(1, 9), static_cast<PassKind>(draw(0, 1)), &plans[draw(0, 1)]);
        }
        const PickRules rules{
            {.max_rows = 9, .max_shared_rows = draw(1, 9), .divides_prompts = draw(0, 1) == 1},
            draw(1, 12)};
        const PassPick pick = waiting.pick(rules);
        ASSERT_FALSE(pick.parts.empty());
        const auto& list = waiting.list();
        const RowRun& oldest = *list[pick.parts.front().index];
        int n_rows = 0;
        int n_prompt_rows = 0;
        for (const Part& part : pick.parts) {
            const RowRun& run = *list[part.index];
            const bool is_prompt = run.request.kind == PassKind::prompt;
            EXPECT_TRUE(can_share_pass(oldest, run));
            EXPECT_GE(part.n_rows, 1);
            EXPECT_LE(part.n_rows, run.n_rows);
            EXPECT_TRUE(part.n_rows == run.n_rows || (is_prompt && rules.limits.divides_prompts));
            n_rows += part.n_rows;
            n_prompt_rows += is_prompt ? part.n_rows : 0;
        }
        if (pick.parts.size() > 1) {
            EXPECT_LE(n_rows, rules.limits.max_shared_rows);
        }
        const bool may_exceed = oldest.request.kind == PassKind::prompt &&
                                !rules.limits.divides_prompts && n_prompt_rows == oldest.n_rows;
        EXPECT_TRUE(n_prompt_rows <= rules.max_prompt_rows || may_exceed);
        EXPECT_EQ(pick.parts.front().index, 0u) << "the oldest goes first";
    }
}

}  // namespace
}  // namespace knap::pass_picker_test
