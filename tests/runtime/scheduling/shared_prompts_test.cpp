#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/scheduling/page_supply.h"
#include "support/supply_rig.h"

namespace knap::test::shared_prompts_test {
namespace {

// Two prompts with a page in common.
class SharedPrompts : public SupplyRig {
  protected:
    SharedPrompts() {
        other_prompt.back() = 7;
        begin();
    }
    void begin() {
        older.begin();
        younger.begin();
        supply.set_prompt(older.holder, prompt);
        supply.set_prompt(younger.holder, other_prompt);
    }
    // Whether the request still waited when it was asked.
    bool waits(Client& client) {
        return !supply.wait_for_shared_rows(client.holder, [] { return true; });
    }

    std::vector<Token> prompt = text(2);
    std::vector<Token> other_prompt = text(2);
    Client older{*this};
    Client younger{*this};
};

TEST_F(SharedPrompts, TheYoungerWaitsUntilTheRowsAreThere) {
    Waiting waiting;
    std::jthread thread([&] {
        EXPECT_TRUE(supply.wait_for_shared_rows(younger.holder, waiting.is_cancelled()));
        EXPECT_EQ(supply.adopt(younger.holder, other_prompt), 2 * kPage - 1);
    });
    waiting.wait();
    older.compute(1);
    older.publish(text(1));
    EXPECT_TRUE(waits(younger));  // the second page has common rows too
    older.compute(2);
    older.publish(prompt);
}

TEST_F(SharedPrompts, TheOlderDoesNotWait) {
    EXPECT_FALSE(waits(older));
    EXPECT_TRUE(waits(younger));
}

TEST_F(SharedPrompts, RowsThatAreThereAreNotWaitedFor) {
    younger.compute(2);
    EXPECT_FALSE(waits(younger));
}

TEST_F(SharedPrompts, FewRowsAreNotWaitedFor) {
    other_prompt[20] = 7;
    EXPECT_FALSE(waits(younger));
}

TEST_F(SharedPrompts, ARequestThatEndedIsNotWaitedFor) {
    older.end();
    EXPECT_FALSE(waits(younger));
}

TEST_F(SharedPrompts, APromptThatWasReadIsNotWaitedFor) {
    supply.set_prompt(older.holder, {});
    EXPECT_FALSE(waits(younger));
}

TEST_F(SharedPrompts, NobodyWaitsForARequestThatWaitsForPages) {
    Client oldest(*this);
    older.end();
    younger.end();
    oldest.begin();
    oldest.compute(kPages);
    begin();
    Waiting waiting;
    std::jthread thread([&] { EXPECT_EQ(older.reserve(1, waiting.is_cancelled()), Grant::ready); });
    waiting.wait();
    EXPECT_FALSE(waits(younger));
    supply.release(oldest.holder);
}

}  // namespace
}  // namespace knap::test::shared_prompts_test
