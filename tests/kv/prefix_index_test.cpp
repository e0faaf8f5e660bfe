#include "kv/prefix_index.h"

#include <algorithm>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::prefix_index_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tokens = std::vector<Token>;
using Pages = std::vector<PageId>;

constexpr int kPageRows = 4;

std::uint64_t same_for_all(std::uint64_t /*before*/, std::span<const Token> /*tokens*/) {
    return 0;
}

class PrefixIndexTest : public ::testing::Test {
  protected:
    // New pages for a text, as a session that computes its rows would take them.
    Pages compute(const Tokens& tokens) {
        Pages pages((tokens.size() + kPageRows - 1) / kPageRows);
        for (PageId& page : pages) {
            page = pool.take().value();
        }
        return pages;
    }
    void release(const Pages& pages) {
        for (const PageId page : pages) {
            pool.release(page);
        }
    }
    // Lists a text whose session has ended: only the index uses its pages.
    Pages leave(const Tokens& tokens) {
        const Pages pages = compute(tokens);
        index.insert(tokens, pages);
        release(pages);
        return pages;
    }
    // Finds, and releases what was found.
    PrefixIndex::Match look_up(const Tokens& tokens) {
        const PrefixIndex::Match match = index.find(tokens);
        release(match.pages);
        if (match.partial >= 0) {
            pool.release(match.partial);
        }
        return match;
    }
    void expect_partial(const Tokens& tokens, const Pages& pages, PageId partial, int n_partial) {
        const PrefixIndex::Match match = look_up(tokens);
        EXPECT_EQ(match.pages, pages);
        EXPECT_EQ(match.partial, partial);
        EXPECT_EQ(match.n_partial, n_partial);
    }
    // The page that evict_one() drops; nullopt: it says that there is none.
    std::optional<PageId> evicted() {
        std::vector<int> promised;
        for (PageId page = 0; page < pool.n_pages(); ++page) {
            promised.push_back(index.n_promised(page));
        }
        if (!index.evict_one()) {
            return std::nullopt;
        }
        for (PageId page = 0; page < pool.n_pages(); ++page) {
            if (index.n_promised(page) != promised[static_cast<std::size_t>(page)]) {
                EXPECT_EQ(pool.users(page), 0);
                return page;
            }
        }
        return -1;
    }

    PagePool pool{32};
    PrefixIndex index{pool, kPageRows};
};

TEST_F(PrefixIndexTest, FindsWholePagesInOrder) {
    const Pages pages = leave({1, 2, 3, 4, 5, 6, 7, 8});
    expect_partial({1, 2, 3, 4, 5, 6, 7, 8, 9}, pages, -1, 0);
    expect_partial({1, 2, 3, 4, 9, 9, 9, 9}, {pages[0]}, -1, 0);
    expect_partial({9, 2, 3, 4, 5, 6, 7, 8}, {}, -1, 0);
    expect_partial({5, 6, 7, 8}, {}, -1, 0);
    expect_partial({}, {}, -1, 0);
}

TEST_F(PrefixIndexTest, FindsPartOfAPage) {
    const Pages pages = leave({1, 2, 3, 4, 5, 6});
    expect_partial({1, 2, 3, 4, 5, 6, 7}, {pages[0]}, pages[1], 2);
    expect_partial({1, 2, 3, 4, 5}, {pages[0]}, pages[1], 1);
    expect_partial({1, 2, 3, 9, 5, 6}, {}, pages[0], 3);
    expect_partial({1, 2}, {}, pages[0], 2);
    EXPECT_EQ(index.n_promised(pages[0]), 4);
    EXPECT_EQ(index.n_promised(pages[1]), 2);
}

TEST_F(PrefixIndexTest, PartIsTheLongestThereIs) {
    leave({1, 2, 3, 4, 5, 5, 5, 5});
    const Pages longest = leave({1, 2, 3, 4, 5, 6, 7});
    leave({1, 2, 3, 4, 5, 6, 8, 8});
    expect_partial({1, 2, 3, 4, 5, 6, 7, 7}, {0}, longest[1], 3);
}

TEST_F(PrefixIndexTest, FindingTakesUses) {
    const Pages pages = leave({1, 2, 3, 4, 5, 6, 7, 8, 9, 9});
    const PrefixIndex::Match match = index.find(Tokens{1, 2, 3, 4, 5, 6});
    EXPECT_EQ(pool.users(pages[0]), 2);
    EXPECT_EQ(pool.users(pages[1]), 2);
    EXPECT_EQ(pool.users(pages[2]), 1);
    release(match.pages);
    pool.release(match.partial);
}

TEST_F(PrefixIndexTest, DuplicatesAreNotListed) {
    const Pages pages = leave({1, 2, 3, 4, 5, 6, 7});
    const Pages again = compute({1, 2, 3, 4, 5, 6});
    index.insert(Tokens{1, 2, 3, 4, 5, 6}, again);
    EXPECT_EQ(index.n_listed(), 2);
    EXPECT_EQ(index.n_promised(again[0]), 0);
    EXPECT_EQ(index.n_promised(again[1]), 0);
    EXPECT_EQ(pool.users(again[0]), 1);
    expect_partial({1, 2, 3, 4, 5, 6, 7}, {pages[0]}, pages[1], 3);
}

TEST_F(PrefixIndexTest, PagesFollowThoseListedForTheSameTokens) {
    const Pages pages = leave({1, 2, 3, 4});
    const Pages others = leave({1, 2, 3, 4, 5, 6, 7, 8});
    expect_partial({1, 2, 3, 4, 5, 6, 7, 8}, {pages[0], others[1]}, -1, 0);
    EXPECT_EQ(pool.users(others[0]), 0);
}

TEST_F(PrefixIndexTest, PartlyFilledPageIsExtended) {
    const Tokens text = {1, 2, 3, 4, 5, 6};
    const Pages pages = compute(text);
    for (std::size_t n_tokens = 1; n_tokens <= text.size(); ++n_tokens) {
        const std::span<const Token> tokens = std::span(text).first(n_tokens);
        index.insert(tokens, std::span(pages).first((n_tokens + kPageRows - 1) / kPageRows));
        EXPECT_EQ(index.n_promised(pages[0]), static_cast<int>(std::min<std::size_t>(4, n_tokens)));
        EXPECT_EQ(pool.users(pages[0]), 2);
    }
    EXPECT_EQ(index.n_listed(), 2);
    expect_partial(text, {pages[0]}, pages[1], 2);
    index.insert(std::span(text).first(5), pages);  // does not shrink
    EXPECT_EQ(index.n_promised(pages[1]), 2);
}

TEST_F(PrefixIndexTest, PageWithMoreRowsReplacesOneWithABeginning) {
    const Pages beginning = leave({1, 2, 3, 4, 5, 6});
    const Pages more = leave({1, 2, 3, 4, 5, 6, 7, 8, 9});
    EXPECT_EQ(pool.users(beginning[1]), 0);
    EXPECT_EQ(index.n_listed(), 3);
    expect_partial({1, 2, 3, 4, 5, 6, 7, 8, 9}, {beginning[0], more[1]}, more[2], 1);
}

TEST_F(PrefixIndexTest, LeastRecentlyUsedIsEvictedFirst) {
    const Pages first = leave({1, 1, 1, 1, 2, 2, 2, 2});
    const Pages second = leave({3, 3, 3, 3, 4});
    const Pages third = leave({1, 1, 1, 1, 5, 5, 5, 5});
    look_up({1, 1, 1, 1, 2, 2});
    EXPECT_EQ(index.n_evictable(), 5);
    EXPECT_EQ(evicted(), second[1]);
    EXPECT_EQ(evicted(), second[0]);
    EXPECT_EQ(evicted(), third[1]);
    EXPECT_EQ(evicted(), first[1]);
    EXPECT_EQ(evicted(), first[0]);
    EXPECT_EQ(evicted(), std::nullopt);
    EXPECT_EQ(index.n_listed(), 0);
}

TEST_F(PrefixIndexTest, PagesInUseAreNotEvicted) {
    const Pages used = leave({1, 1, 1, 1, 2, 2, 2, 2, 3});
    const Pages unused = leave({4, 4, 4, 4});
    pool.share(used[1]);
    EXPECT_EQ(index.n_evictable(), 2);
    EXPECT_EQ(evicted(), used[2]);
    EXPECT_EQ(evicted(), unused[0]);
    EXPECT_EQ(evicted(), std::nullopt) << "the page before one in use is found through it";
    EXPECT_EQ(index.n_evictable(), 0);
    pool.release(used[1]);
    EXPECT_EQ(evicted(), used[1]);
    EXPECT_EQ(evicted(), used[0]);
}

TEST_F(PrefixIndexTest, ForgettingDropsAPageAndAllThatFollowIt) {
    const Pages pages = leave({1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4});
    leave({1, 1, 1, 1, 2, 2, 2, 2, 5});
    const Pages beside = leave({1, 1, 1, 1, 6});
    index.forget(pages[1]);
    EXPECT_EQ(index.n_listed(), 2);
    EXPECT_EQ(pool.n_free(), pool.n_pages() - 2);
    expect_partial({1, 1, 1, 1, 2, 2, 2, 2}, {pages[0]}, -1, 0);
    expect_partial({1, 1, 1, 1, 6}, {pages[0]}, beside[1], 1);
    index.forget(pages[1]);  // not listed any more
    EXPECT_EQ(index.n_listed(), 2);
}

TEST_F(PrefixIndexTest, PageBeforeAForgottenOneCanBeEvicted) {
    const Pages pages = leave({1, 1, 1, 1, 2});
    index.forget(pages[1]);
    EXPECT_EQ(evicted(), pages[0]);
}

TEST_F(PrefixIndexTest, ClearingKeepsPagesOfOtherUsers) {
    const Pages used = leave({1, 1, 1, 1, 2});
    leave({3, 3});
    pool.share(used[1]);
    index.clear();
    EXPECT_EQ(index.n_listed(), 0);
    EXPECT_EQ(pool.n_free(), pool.n_pages() - 1);
    EXPECT_EQ(pool.users(used[1]), 1);
    expect_partial({1, 1, 1, 1, 2}, {}, -1, 0);
}

TEST(PrefixIndex, ReleasesItsPagesAtTheEnd) {
    PagePool pool(2);
    {
        PrefixIndex index(pool, kPageRows);
        const PageId page = *pool.take();
        index.insert(Tokens{1}, Pages{page});
        pool.release(page);
        EXPECT_EQ(pool.n_free(), 1);
    }
    EXPECT_EQ(pool.n_free(), 2);
}

TEST(PrefixIndex, LongTextsNeedNoDeepStack) {
    constexpr int kPages = 1 << 18;
    PagePool pool(kPages);
    PrefixIndex index(pool, 1);
    Pages pages;
    while (const std::optional<PageId> page = pool.take()) {
        pages.push_back(*page);
    }
    index.insert(Tokens(kPages, 7), pages);
    for (const PageId page : pages) {
        pool.release(page);
    }
    EXPECT_EQ(index.n_evictable(), kPages);
    index.clear();
    EXPECT_EQ(pool.n_free(), kPages);
}

TEST(PrefixIndex, EqualHashesAreNotTakenForEqualTokens) {
    PagePool pool(4);
    PrefixIndex index(pool, kPageRows, same_for_all);
    const Pages pages = {*pool.take(), *pool.take()};
    index.insert(Tokens{1, 1, 1, 1, 2, 2, 2, 2}, pages);
    EXPECT_THAT(index.find(Tokens{3, 3, 3, 3}).pages, IsEmpty());
    EXPECT_THAT(index.find(Tokens{2, 2, 2, 2}).pages, IsEmpty()) << "follows another page";
    EXPECT_THAT(index.find(Tokens{1, 1, 1, 1, 2, 2, 2, 2}).pages, ElementsAre(pages[0], pages[1]));
}

TEST(PrefixIndex, HashDependsOnTheWholeText) {
    const Tokens one = {1, 2, 3, 4};
    const Tokens other = {1, 2, 4, 3};
    EXPECT_EQ(chained_hash(5, one), chained_hash(5, one));
    EXPECT_NE(chained_hash(5, one), chained_hash(5, other));
    EXPECT_NE(chained_hash(5, one), chained_hash(6, one));
}

TEST(PrefixIndexDeathTest, OverwritingWithoutForgettingIsABug) {
    PagePool pool(2);
    PrefixIndex index(pool, kPageRows);
    const Pages pages = {*pool.take()};
    index.insert(Tokens{1, 2, 3}, pages);
    EXPECT_DEATH(index.insert(Tokens({1, 2, 4}), pages), "forgotten before");
    EXPECT_DEATH(index.insert(Tokens({1, 2, 3, 4, 5}), pages), "as many pages");
    EXPECT_DEATH(index.insert(Tokens({5}), Pages({1})), "in use");
}

}  // namespace
}  // namespace knap::prefix_index_test
