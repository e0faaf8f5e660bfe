#include "runtime/scheduling/pass_queue.h"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_batch_runner.h"

namespace knap::pass_queue_test {
namespace {

using test::TestRun;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kUnbounded = 1 << 20;
constexpr PassLimits kSmall{.max_rows = 8, .max_shared_rows = 4, .divides_prompts = true};

// Runs with names, and the queue that they wait in.
class Rig {
  public:
    explicit Rig(const PassLimits& limits) : queue(limits) {}

    TestRun& add(const std::string& name,
                 int n_rows,
                 const ModulePlan* plan,
                 PassKind kind = PassKind::decode) {
        TestRun& run = runs_.emplace_back(n_rows, kind, plan);
        add_ticket(name).run = &run.run;
        return run;
    }
    void add_work(const std::string& name) { add_ticket(name); }

    std::vector<std::string> take(int max_prompt_rows = kUnbounded) {
        queue.take_next(max_prompt_rows, batch);
        std::vector<std::string> names;
        for (const Ticket* ticket : batch) {
            names.push_back(names_.at(ticket));
        }
        return names;
    }
    const std::string& name_of(const Ticket* ticket) const { return names_.at(ticket); }

    PassQueue queue;
    std::vector<Ticket*> batch;

  private:
    Ticket& add_ticket(const std::string& name) {
        Ticket& ticket = tickets_.emplace_back();
        names_[&ticket] = name;
        queue.add(ticket);
        return ticket;
    }

    std::deque<TestRun> runs_;
    std::deque<Ticket> tickets_;
    std::map<const Ticket*, std::string> names_;
};

const ModulePlan kWhole(4);
const ModulePlan kDraft = early_exit_plan(4, 2);
const ModulePlan kOtherDraft = early_exit_plan(4, 3);

TEST(PassQueue, GroupsTakeTurnsByTheAgeOfTheirOldestRun) {
    Rig rig(kSmall);
    rig.add("a", 3, &kDraft);
    rig.add("b", 1, &kWhole);
    rig.add("c", 3, &kDraft);  // has no room beside a
    rig.add_work("work");
    rig.add("d", 1, &kOtherDraft);
    rig.add("e", 1, &kDraft);
    EXPECT_THAT(rig.take(), ElementsAre("a", "e"));
    EXPECT_THAT(rig.take(), ElementsAre("b"));
    EXPECT_THAT(rig.take(), ElementsAre("work"));
    EXPECT_THAT(rig.take(), ElementsAre("d"));
    EXPECT_THAT(rig.take(), ElementsAre("c"));
    EXPECT_THAT(rig.take(), IsEmpty());
}

// Sessions of three groups come at random, often more of a group than its pass has room for.
TEST(PassQueue, NobodyWaitsForTwoPassesOfAnotherGroup) {
    const ModulePlan* plans[] = {&kWhole, &kDraft, &kOtherDraft};
    std::mt19937 random(11);
    const auto draw = [&](int from, int to) {
        return std::uniform_int_distribution<int>(from, to)(random);
    };
    Rig rig(kSmall);
    std::map<std::string, int> n_waiting;
    // By group that waits, then by other group: passes of that group since the turn or the arrival
    // of the first.
    std::map<std::string, std::map<std::string, int>> n_passes;
    int n_left_behind = 0;
    for (int step = 0; step < 3000; ++step) {
        for (int i = draw(0, 4); i > 0 && rig.queue.n_waiting() < 12; --i) {
            const int group = draw(0, 2);
            const auto kind = draw(0, 3) == 0 ? PassKind::prompt : PassKind::decode;
            rig.add(std::to_string(group), draw(1, 4), plans[group], kind);
            ++n_waiting[std::to_string(group)];
            n_passes.try_emplace(std::to_string(group));
        }
        const std::vector<std::string> taken = rig.take();
        if (taken.empty()) {
            continue;
        }
        const std::string& group = taken.front();
        n_passes.erase(group);
        for (auto& [waiting, seen] : n_passes) {
            EXPECT_LE(++seen[group], 1) << waiting << " waits for " << group << " at " << step;
        }
        n_waiting[group] -= static_cast<int>(taken.size());
        if (n_waiting[group] > 0) {
            n_passes.try_emplace(group);
            ++n_left_behind;
        }
    }
    EXPECT_GT(n_left_behind, 500);
}

// Rows of decoding go first, but every run gets its turn.
TEST(PassQueue, APromptIsNotStarvedByDecodingRuns) {
    Rig rig(kSmall);
    rig.add("old", 4, &kWhole);
    rig.add("prompt", 6, &kWhole, PassKind::prompt);
    rig.add("new", 4, &kWhole);
    EXPECT_THAT(rig.take(), ElementsAre("old"));
    rig.add("newer", 3, &kWhole);
    EXPECT_THAT(rig.take(), ElementsAre("prompt", "newer"));
    EXPECT_EQ(rig.batch.front()->run->n_rows, 1);
    EXPECT_THAT(rig.take(), ElementsAre("new"));
}

TEST(PassQueue, APartOfAPromptHasNoLogits) {
    Rig rig(kSmall);
    TestRun& prompt = rig.add("prompt", 6, &kWhole, PassKind::prompt);
    rig.add("step", 1, &kWhole);
    EXPECT_THAT(rig.take(), ElementsAre("prompt", "step"));
    EXPECT_EQ(prompt.run.n_rows, 3);
    EXPECT_THAT(prompt.run.request.logit_rows, IsEmpty());
    rig.batch.front()->restore_run();
    EXPECT_EQ(prompt.run.n_rows, 6);
    EXPECT_THAT(prompt.run.request.logit_rows, ElementsAre(5));

    TestRun& whole = rig.add("whole", 6, &kWhole, PassKind::prompt);
    EXPECT_THAT(rig.take(), ElementsAre("whole"));
    EXPECT_EQ(whole.run.n_rows, 6);
    EXPECT_THAT(whole.run.request.logit_rows, ElementsAre(5));
}

TEST(PassQueue, UnwantedRunsAreDroppedWithoutResults) {
    Rig rig(kSmall);
    rig.add("a", 1, &kWhole).cancel_if([] { return false; });
    TestRun& unwanted = rig.add("unwanted", 1, &kWhole);
    unwanted.cancel_if([] { return true; });
    unwanted.result.is_complete = true;
    unwanted.result.n_rows = 1;
    rig.add_work("work");
    rig.queue.drop_unwanted();
    EXPECT_FALSE(unwanted.result.is_complete);
    EXPECT_EQ(unwanted.result.n_rows, 0);
    EXPECT_THAT(rig.take(), ElementsAre("a"));
    EXPECT_THAT(rig.take(), ElementsAre("work"));
    EXPECT_TRUE(rig.queue.is_empty());
}

TEST(PassQueue, OnlyPromptsDelayNobodyWhoDecodes) {
    Rig rig(kSmall);
    EXPECT_EQ(rig.queue.next(), nullptr);
    rig.add("prompt", 1, &kWhole, PassKind::prompt);
    EXPECT_EQ(rig.name_of(rig.queue.next()), "prompt");
    EXPECT_FALSE(rig.queue.delays_decoding());
    rig.add_work("work");
    EXPECT_EQ(rig.queue.n_waiting(), 2);
    EXPECT_TRUE(rig.queue.delays_decoding());
}

}  // namespace
}  // namespace knap::pass_queue_test
