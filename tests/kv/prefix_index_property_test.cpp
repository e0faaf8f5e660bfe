// Sessions that share pages through the index, at random: they start from what they find, compute
// and overwrite rows, list them, and end at any moment. After each action, pool and index are
// compared with a naive index and with the rows that every page really holds.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "support/naive_prefix_index.h"

namespace knap::test::prefix_index_property_test {
namespace {

constexpr std::size_t kPageRows = 4;
constexpr std::size_t kMaxTokens = 30;
constexpr unsigned kTokens = 3;  // so few that texts often begin alike

std::uint64_t colliding_hash(std::uint64_t before, std::span<const Token> tokens) {
    return chained_hash(before, tokens) % 2;
}

// A session, or a finder that has not released its match yet: uses one page for every kPageRows
// tokens.
struct Holder {
    TokenText tokens;
    std::vector<PageId> pages;

    // The rows that it reads of a page; 0: it does not use the page.
    std::size_t n_rows(PageId page) const {
        const auto found = std::ranges::find(pages, page);
        const auto first = static_cast<std::size_t>(found - pages.begin()) * kPageRows;
        return found == pages.end() ? 0 : std::min(kPageRows, tokens.size() - first);
    }
};

class World {
  public:
    World(unsigned seed, PageHash hash)
        : random_(seed),
          pool_(8 + static_cast<int>(seed % 4) * 8),
          index_(pool_, kPageRows, hash),
          texts_(static_cast<std::size_t>(pool_.n_pages())) {}

    void act();
    void check() const;
    void end();

  private:
    unsigned below(std::size_t n) { return static_cast<unsigned>(random_() % n); }
    TokenText random_text();
    std::size_t random_holder() { return below(holders_.size()); }
    NaivePrefixIndex::IsUsed is_used() const {
        return [this](PageId page) { return n_holders(page) > 0; };
    }
    std::size_t n_holders(PageId page) const {
        return static_cast<std::size_t>(std::ranges::count_if(
            holders_, [page](const Holder& holder) { return holder.n_rows(page) > 0; }));
    }

    void start();
    void compute(std::size_t i);
    bool compute_row(Holder& holder);
    void insert(const Holder& holder);
    void truncate(Holder& holder, std::size_t n_tokens);
    void end(std::size_t i);
    bool evict();
    void evict_all();
    void forget(PageId page);
    std::optional<PageId> new_page();
    bool own_last_page(Holder& holder);

    std::mt19937 random_;
    PagePool pool_;
    PrefixIndex index_;
    NaivePrefixIndex naive_{kPageRows};
    std::vector<Holder> holders_;
    // By page: the text that its rows were computed for, from the first token on.
    std::vector<TokenText> texts_;
};

void World::act() {
    const unsigned action = below(200);
    if (action < 40 || holders_.empty()) {
        start();
    } else if (action < 100) {
        compute(random_holder());
    } else if (action < 140) {
        insert(holders_[random_holder()]);
    } else if (action < 160) {
        Holder& holder = holders_[random_holder()];
        truncate(holder, below(holder.tokens.size() + 1));
    } else if (action < 184) {
        end(random_holder());
    } else if (action < 192) {
        evict();
    } else if (action < 194) {
        evict_all();
    } else if (action < 199) {
        forget(static_cast<PageId>(below(texts_.size())));
    } else {
        index_.clear();
        naive_.clear();
    }
}

// Often begins like a text that some page holds.
TokenText World::random_text() {
    TokenText text = texts_[below(texts_.size())];
    text.resize(below(text.size() + 1));
    for (unsigned n_more = below(8); n_more > 0 && text.size() < kMaxTokens; --n_more) {
        text.push_back(static_cast<Token>(below(kTokens)));
    }
    return text;
}

void World::start() {
    const TokenText text = random_text();
    const PrefixIndex::Match match = index_.find(text);
    const PrefixIndex::Match expected = naive_.find(text);
    ASSERT_EQ(match.pages, expected.pages);
    ASSERT_EQ(match.partial, expected.partial);
    ASSERT_EQ(match.n_partial, expected.n_partial);
    Holder found{.tokens = text, .pages = match.pages};
    found.tokens.resize(match.pages.size() * kPageRows + static_cast<std::size_t>(match.n_partial));
    if (match.partial >= 0) {
        found.pages.push_back(match.partial);
    }
    holders_.push_back(found);
}

// Ends the session when there is no page for it.
void World::compute(std::size_t i) {
    for (unsigned n_rows = 1 + below(6); n_rows > 0; --n_rows) {
        if (holders_[i].tokens.size() == kMaxTokens || !compute_row(holders_[i])) {
            end(i);
            return;
        }
    }
}

bool World::compute_row(Holder& holder) {
    if (holder.tokens.size() % kPageRows == 0) {
        const std::optional<PageId> page = new_page();
        if (!page) {
            return false;
        }
        holder.pages.push_back(*page);
    } else if (!own_last_page(holder)) {
        return false;
    }
    holder.tokens.push_back(static_cast<Token>(below(kTokens)));
    texts_[static_cast<std::size_t>(holder.pages.back())] = holder.tokens;
    return true;
}

std::optional<PageId> World::new_page() {
    if (pool_.n_free() == 0 && (below(4) == 0 || !evict())) {
        return std::nullopt;
    }
    return pool_.take();
}

// Makes sure that nobody else reads the next row of the last page. Copies the page if it must;
// false: there is no page to copy it to.
bool World::own_last_page(Holder& holder) {
    const PageId page = holder.pages.back();
    const std::size_t n_rows = holder.n_rows(page);
    const bool is_read = std::ranges::any_of(
        holders_, [&](const Holder& other) { return other.n_rows(page) > n_rows; });
    const bool is_promised = index_.n_promised(page) > static_cast<int>(n_rows);
    if (!is_read && !is_promised) {
        return true;
    }
    if (!is_read && below(2) == 0) {
        forget(page);
        return true;
    }
    const std::optional<PageId> copy = new_page();
    if (!copy) {
        return false;
    }
    texts_[static_cast<std::size_t>(*copy)] = holder.tokens;
    pool_.release(page);
    holder.pages.back() = *copy;
    return true;
}

// Lists the text of the holder or a beginning of it.
void World::insert(const Holder& holder) {
    TokenText text = holder.tokens;
    if (below(3) == 0) {
        text.resize(below(text.size() + 1));
    }
    const auto pages = std::span(holder.pages).first((text.size() + kPageRows - 1) / kPageRows);
    index_.insert(text, pages);
    naive_.insert(text, pages);
}

void World::truncate(Holder& holder, std::size_t n_tokens) {
    holder.tokens.resize(n_tokens);
    while (holder.pages.size() * kPageRows >= n_tokens + kPageRows) {
        pool_.release(holder.pages.back());
        holder.pages.pop_back();
    }
}

void World::end(std::size_t i) {
    truncate(holders_[i], 0);
    holders_.erase(holders_.begin() + static_cast<std::ptrdiff_t>(i));
}

bool World::evict() {
    const std::optional<PageId> page = naive_.next_evicted(is_used());
    EXPECT_EQ(index_.evict_one(), page.has_value());
    if (page) {
        EXPECT_EQ(index_.n_promised(*page), 0);
        EXPECT_EQ(pool_.users(*page), 0);
        naive_.forget(*page);
    }
    return page.has_value();
}

void World::evict_all() {
    const int n_evictable = index_.n_evictable();
    int n_evicted = 0;
    while (evict()) {
        ++n_evicted;
    }
    EXPECT_EQ(n_evicted, n_evictable);
}

void World::forget(PageId page) {
    index_.forget(page);
    naive_.forget(page);
}

void World::check() const {
    int n_free = 0;
    for (PageId page = 0; page < pool_.n_pages(); ++page) {
        const TokenText* const listed = naive_.text_of(page);
        const std::size_t n_users = n_holders(page) + (listed != nullptr ? 1 : 0);
        ASSERT_EQ(pool_.users(page), n_users);
        n_free += n_users == 0 ? 1 : 0;
        const std::size_t n_promised =
            listed != nullptr ? listed->size() - naive_.first_row(*listed) : 0;
        ASSERT_EQ(index_.n_promised(page), n_promised);
        const TokenText& held = texts_[static_cast<std::size_t>(page)];
        ASSERT_TRUE(listed == nullptr || begins_with(held, *listed)) << "listed for other tokens";
    }
    ASSERT_EQ(pool_.n_free(), n_free);
    ASSERT_EQ(index_.n_listed(), naive_.n_listed());
    ASSERT_EQ(index_.n_evictable(), naive_.n_evictable(is_used()));
    for (const Holder& holder : holders_) {
        ASSERT_EQ(holder.pages.size(), (holder.tokens.size() + kPageRows - 1) / kPageRows);
        for (std::size_t i = 0; i < holder.pages.size(); ++i) {
            const TokenText& held = texts_[static_cast<std::size_t>(holder.pages[i])];
            const auto read =
                std::span(holder.tokens).first(std::min(holder.tokens.size(), (i + 1) * kPageRows));
            ASSERT_TRUE(begins_with(held, read) && naive_.first_row(held) == i * kPageRows)
                << "rows of other tokens";
        }
    }
}

void World::end() {
    while (!holders_.empty()) {
        end(random_holder());
    }
    EXPECT_EQ(index_.n_evictable(), index_.n_listed());
    if (below(2) == 0) {
        index_.clear();
        naive_.clear();
    } else {
        evict_all();
    }
    check();
    EXPECT_EQ(pool_.n_free(), pool_.n_pages());
}

class PrefixIndexSeeds : public ::testing::TestWithParam<unsigned> {};

TEST_P(PrefixIndexSeeds, AgreesWithANaiveIndex) {
    for (const PageHash hash : {PageHash{chained_hash}, PageHash{colliding_hash}}) {
        World world(GetParam(), hash);
        for (int step = 0; step < 3000 && !HasFailure(); ++step) {
            SCOPED_TRACE(step);
            world.act();
            world.check();
        }
        world.end();
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PrefixIndexSeeds, ::testing::Range(0u, 16u));

}  // namespace
}  // namespace knap::test::prefix_index_property_test
