#include "kv/page_pool.h"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace knap::page_pool_test {
namespace {

TEST(PagePool, GivesEveryPageOnce) {
    PagePool pool(3);
    EXPECT_EQ(pool.n_pages(), 3);
    for (PageId page = 0; page < 3; ++page) {
        EXPECT_EQ(pool.n_free(), 3 - page);
        EXPECT_EQ(pool.users(page), 0);
        EXPECT_EQ(pool.take(), page);
        EXPECT_EQ(pool.users(page), 1);
    }
    EXPECT_EQ(pool.take(), std::nullopt);
    EXPECT_EQ(pool.n_free(), 0);
}

TEST(PagePool, PageIsFreeWhenItsLastUserReleasesIt) {
    PagePool pool(1);
    const PageId page = *pool.take();
    pool.share(page);
    pool.release(page);
    EXPECT_EQ(pool.users(page), 1);
    EXPECT_EQ(pool.n_free(), 0);
    pool.release(page);
    EXPECT_EQ(pool.users(page), 0);
    EXPECT_EQ(pool.n_free(), 1);
}

TEST(PagePool, PageFreedLastIsTakenFirst) {
    PagePool pool(4);
    for (int i = 0; i < 3; ++i) {
        pool.take();
    }
    pool.release(0);
    pool.release(2);
    EXPECT_EQ(pool.take(), 2);
    EXPECT_EQ(pool.take(), 0);
    EXPECT_EQ(pool.take(), 3);
}

TEST(PagePool, MayBeEmpty) {
    PagePool pool(0);
    EXPECT_EQ(pool.n_pages(), 0);
    EXPECT_EQ(pool.take(), std::nullopt);
}

TEST(PagePoolDeathTest, UsingAFreePageIsABug) {
    PagePool pool(2);
    const PageId page = *pool.take();
    pool.release(page);
    EXPECT_DEATH(pool.share(page), "in use");
    EXPECT_DEATH(pool.release(page), "in use");
    EXPECT_DEATH(pool.users(-1), "a page of the pool");
    EXPECT_DEATH(pool.users(2), "a page of the pool");
}

// Every use is an element of `uses`: a page has as many users as elements.
TEST(PagePool, AgreesWithAListOfUses) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        PagePool pool(1 + static_cast<int>(seed));
        std::vector<PageId> uses;
        std::vector<PageId> freed;  // that were not taken since
        for (int step = 0; step < 3000; ++step) {
            const std::size_t i = uses.empty() ? 0 : random() % uses.size();
            const unsigned action = random() % 8;
            if (action < 3) {
                const bool has_free = pool.n_free() > 0;
                const std::optional<PageId> page = pool.take();
                ASSERT_EQ(page.has_value(), has_free);
                if (page) {
                    ASSERT_EQ(std::ranges::count(uses, *page), 0);
                    uses.push_back(*page);
                    if (!freed.empty()) {
                        ASSERT_EQ(*page, freed.back());
                        freed.pop_back();
                    }
                }
            } else if (action < 4 && !uses.empty()) {
                pool.share(uses[i]);
                uses.push_back(uses[i]);
            } else if (!uses.empty()) {
                const PageId page = uses[i];
                pool.release(page);
                uses.erase(uses.begin() + static_cast<std::ptrdiff_t>(i));
                if (std::ranges::count(uses, page) == 0) {
                    freed.push_back(page);
                }
            }
            int n_free = 0;
            for (PageId page = 0; page < pool.n_pages(); ++page) {
                const auto n_uses = std::ranges::count(uses, page);
                ASSERT_EQ(pool.users(page), n_uses);
                n_free += n_uses == 0 ? 1 : 0;
            }
            ASSERT_EQ(pool.n_free(), n_free);
        }
        std::ranges::for_each(uses, [&](PageId page) { pool.release(page); });
        EXPECT_EQ(pool.n_free(), pool.n_pages());
    }
}

}  // namespace
}  // namespace knap::page_pool_test
