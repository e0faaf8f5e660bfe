#include "runtime/scheduling/page_supply.h"

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "support/supply_rig.h"

namespace knap::test::page_supply_test {
namespace {

using PageSupplies = SupplyRig;

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

TEST_F(PageSupplies, WorkInIdleTimeTakesFreePagesOnlyAndKeepsTheOrderOfEnds) {
    Client first(*this);
    Client second(*this);
    first.serve(1);
    second.serve(1);
    {
        const PageSupply::Request work(first.holder, PageSupply::Request::Kind::idle);
        EXPECT_TRUE(supply.reserve_if_free(first.holder, 3 * kPage, kPages * kPage));
        EXPECT_EQ(first.n_pages(), 3);
        EXPECT_FALSE(supply.reserve_if_free(first.holder, 4 * kPage, 4 * kPage));
        EXPECT_EQ(second.n_pages(), 1);
        Client client(*this);
        client.begin();
        EXPECT_EQ(client.reserve(1), Grant::ready) << "those of a session without a request";
        EXPECT_EQ(second.n_pages(), 0);
        EXPECT_EQ(client.try_reserve(2), Grant::cancelled) << "it waits until the work ends";
    }
    EXPECT_EQ(first.n_pages(), 1);
    second.serve(1);
    { const PageSupply::Request work(first.holder, PageSupply::Request::Kind::idle); }
    Client client(*this);
    client.begin();
    client.compute(3);
    EXPECT_EQ(first.n_pages(), 0) << "its request ended before the other's";
    EXPECT_EQ(second.n_pages(), 1);
}

TEST_F(PageSupplies, WorkInIdleTimeGivesUpItsPagesWhenItEnds) {
    using Work = PageSupply::Request;
    Client idle(*this);
    idle.serve(2);
    std::optional<Work> work(std::in_place, idle.holder, Work::Kind::idle);
    ASSERT_TRUE(supply.reserve_if_free(idle.holder, 3 * kPage, 3 * kPage));
    Client client(*this);
    client.begin();
    std::atomic<int> n_asked = 0;
    std::jthread thread([&] {
        EXPECT_EQ(client.reserve(3,
                                 [&] {
                                     ++n_asked;
                                     return false;
                                 }),
                  Grant::ready);
    });
    wait_until([&] { return n_asked >= 2; });
    EXPECT_EQ(idle.n_pages(), 3);
    work.reset();
    EXPECT_EQ(idle.n_pages(), 0) << "although its next piece may begin at once";
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

}  // namespace
}  // namespace knap::test::page_supply_test
