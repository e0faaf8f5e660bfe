#include "runtime/page_supply.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/held_scheduler.h"
#include "support/number_store.h"

namespace knap::page_supply_test {
namespace {

using test::NumberStore;
using test::wait_until;
using Grant = PageSupply::Grant;

constexpr int kPage = 256;  // rows
constexpr int kPages = 4;

std::unique_ptr<KvMemory> new_memory() {
    const PageShape shape{.page_rows = kPage, .n_pages = kPages};
    std::vector<std::unique_ptr<KvStore>> stores;
    stores.push_back(std::make_unique<NumberStore>(shape));
    return std::make_unique<KvMemory>(std::move(stores), shape);
}

std::vector<Token> text(int n_pages, Token first = 0) {
    std::vector<Token> tokens(static_cast<std::size_t>(n_pages * kPage));
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
}

// Tells another thread that a request waits.
class Waiting {
  public:
    std::function<bool()> is_cancelled() {
        return [this] {
            was_asked_ = true;
            return false;
        };
    }
    void wait() const {
        wait_until([this] { return was_asked_.load(); });
    }

  private:
    std::atomic<bool> was_asked_ = false;
};

class PageSupplies : public ::testing::Test {
  protected:
    // A session as the supply sees it.
    struct Client {
        explicit Client(PageSupplies& test)
            : supply(test.supply),
              sequence(*test.memory, kPages * kPage),
              holder(supply, sequence) {}

        void begin() { request.emplace(holder); }
        void end() { request.reset(); }
        Grant reserve(int n_pages, const std::function<bool()>& is_cancelled = {}) {
            return supply.reserve(holder, n_pages * kPage, n_pages * kPage, is_cancelled);
        }
        // Asks only once, so that it never waits for long.
        Grant try_reserve(int n_pages) {
            return reserve(n_pages, [] { return true; });
        }
        void compute(int n_pages) {
            ASSERT_EQ(reserve(n_pages), Grant::ready);
            sequence.commit(n_pages * kPage);
        }
        // A request from beginning to end.
        void serve(int n_pages) {
            begin();
            compute(n_pages);
            end();
        }
        void publish(const std::vector<Token>& tokens) { supply.publish(holder, tokens, true); }
        int n_pages() const { return static_cast<int>(sequence.pages().size()); }

        PageSupply& supply;
        Sequence sequence;
        PageSupply::Holder holder;
        std::optional<PageSupply::Request> request;
    };

    // Computes a text that stays in the prefix cache alone.
    void list(const std::vector<Token>& tokens) {
        Client client(*this);
        client.begin();
        client.compute(static_cast<int>(tokens.size()) / kPage);
        client.publish(tokens);
    }
    int n_free() {
        const std::lock_guard lock(memory->mutex());
        return memory->pool().n_free();
    }

    std::unique_ptr<KvMemory> memory = new_memory();
    PageSupply supply{*memory};
};

TEST_F(PageSupplies, PagesOfThePrefixCacheGoFirst) {
    Client idle(*this);
    idle.serve(1);
    list(text(2, 1000));
    EXPECT_EQ(n_free(), 1);
    Client client(*this);
    client.begin();
    client.compute(3);
    EXPECT_EQ(idle.n_pages(), 1);
    EXPECT_EQ(memory->index().n_listed(), 0);
}

TEST_F(PageSupplies, TheLeastRecentlyUsedPrefixGoesFirst) {
    const auto old = text(1, 1000);
    const auto other = text(1, 2000);
    list(old);
    list(other);
    Client client(*this);
    client.begin();
    EXPECT_EQ(supply.adopt(client.holder, old), kPage);  // uses it again
    supply.release(client.holder);
    client.compute(3);
    client.end();
    supply.release(client.holder);
    EXPECT_EQ(supply.adopt(client.holder, other), 0);
    EXPECT_EQ(supply.adopt(client.holder, old), kPage);
}

TEST_F(PageSupplies, SessionsWithoutARequestGoInTheOrderOfTheirEnds) {
    Client first(*this);
    Client second(*this);
    first.begin();
    first.compute(2);
    second.serve(2);
    first.end();
    Client client(*this);
    client.begin();
    client.compute(1);
    EXPECT_EQ(second.n_pages(), 0);
    EXPECT_EQ(second.sequence.committed(), 0);
    EXPECT_EQ(first.n_pages(), 2);
}

TEST_F(PageSupplies, WhatIsWishedForIsTakenFromNobody) {
    Client idle(*this);
    idle.serve(1);
    list(text(1, 1000));
    Client client(*this);
    client.begin();
    EXPECT_EQ(supply.reserve(client.holder, kPage, kPages * kPage, {}), Grant::ready);
    EXPECT_EQ(client.n_pages(), 2);
    EXPECT_EQ(idle.n_pages(), 1);
    EXPECT_EQ(memory->index().n_listed(), 1);
}

TEST_F(PageSupplies, TheYoungestRequestGivesUpItsPagesAndIsToldSo) {
    Client oldest(*this);
    Client middle(*this);
    Client youngest(*this);
    for (Client* client : {&oldest, &middle, &youngest}) {
        client->begin();
        client->compute(1);
    }
    Waiting waiting;
    std::jthread thread([&] {
        EXPECT_EQ(oldest.reserve(3), Grant::ready);
        waiting.wait();
        supply.release(oldest.holder);
    });
    Grant grant = Grant::ready;
    while (grant == Grant::ready) {  // round after round
        grant = youngest.reserve(1, waiting.is_cancelled());
    }
    EXPECT_EQ(grant, Grant::lost);
    EXPECT_EQ(youngest.sequence.committed(), 0);
    EXPECT_EQ(youngest.n_pages(), 1);
    EXPECT_EQ(middle.sequence.committed(), kPage);
    EXPECT_EQ(middle.reserve(1), Grant::ready);
}

TEST_F(PageSupplies, ARequestWithoutRowsLosesNone) {
    Client older(*this);
    older.begin();
    older.compute(3);
    Client younger(*this);
    younger.begin();
    ASSERT_EQ(younger.reserve(1), Grant::ready);  // and commits nothing
    std::atomic<bool> is_served = false;
    std::jthread thread([&] {
        EXPECT_EQ(older.reserve(4), Grant::ready);
        is_served = true;
        older.end();
    });
    wait_until([&] {
        EXPECT_EQ(younger.reserve(1), Grant::ready);
        return is_served.load();
    });
}

TEST_F(PageSupplies, TheYoungestWaitsWithoutPagesAndTheOldestGoesOn) {
    Client older(*this);
    Client younger(*this);
    older.begin();
    older.compute(2);
    younger.begin();
    younger.compute(2);
    Waiting waiting;
    std::jthread thread(
        [&] { EXPECT_EQ(younger.reserve(3, waiting.is_cancelled()), Grant::lost); });
    waiting.wait();
    EXPECT_EQ(older.reserve(4), Grant::ready);
    EXPECT_EQ(older.sequence.committed(), 2 * kPage);
    supply.release(older.holder);
}

TEST_F(PageSupplies, NobodyOvertakesAnOlderRequestThatWaits) {
    Client oldest(*this);
    oldest.begin();
    oldest.compute(3);
    Client older(*this);
    older.begin();
    Client youngest(*this);
    youngest.begin();
    Waiting waiting;
    std::jthread thread([&] { EXPECT_EQ(older.reserve(2, waiting.is_cancelled()), Grant::ready); });
    waiting.wait();
    EXPECT_EQ(n_free(), 1);
    EXPECT_EQ(youngest.try_reserve(1), Grant::cancelled);
    supply.release(oldest.holder);
    thread.join();
    EXPECT_EQ(youngest.try_reserve(1), Grant::ready);
}

TEST_F(PageSupplies, ACancelledRequestDoesNotKeepTheOthersWaiting) {
    Client oldest(*this);
    oldest.begin();
    oldest.compute(3);
    Client cancelled(*this);
    cancelled.begin();
    EXPECT_EQ(cancelled.try_reserve(2), Grant::cancelled);
    Client youngest(*this);
    youngest.begin();
    EXPECT_EQ(youngest.try_reserve(1), Grant::ready);
}

TEST_F(PageSupplies, ASessionThatGoesLeavesItsPagesToThoseThatWait) {
    auto older = std::make_unique<Client>(*this);
    older->begin();
    older->compute(3);
    Client younger(*this);
    younger.begin();
    Waiting waiting;
    std::jthread thread(
        [&] { EXPECT_EQ(younger.reserve(3, waiting.is_cancelled()), Grant::ready); });
    waiting.wait();
    older.reset();
}

// Two prompts with a page in common.
class SharedPrompts : public PageSupplies {
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
}  // namespace knap::page_supply_test
