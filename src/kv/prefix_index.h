// The prefix cache: finds pages whose rows were already computed for the beginning of a prompt.
//
// Listed pages form a tree: a page follows the one with the rows just before its own, and a path
// from the root spells a text. Only whole pages are followed by others. What always holds:
//   - the index has one use of every listed page, and lists a page once;
//   - of the pages that follow the same page, none holds only a beginning of another's tokens.
// Whole pages are found by a hash of all tokens up to their end, and then compared token by token
// (equal hashes prove nothing). Not thread-safe: the owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "knap/types.h"

#include "kv/page_pool.h"

namespace knap {

// The key of a page, from the key of the page before it and its own tokens.
using PageHash = std::uint64_t (*)(std::uint64_t before, std::span<const Token> tokens);
std::uint64_t chained_hash(std::uint64_t before, std::span<const Token> tokens);

class PrefixIndex {
  public:
    // The pool must outlive the index. Tests pass a hash that collides.
    PrefixIndex(PagePool& pool, int page_rows, PageHash hash = chained_hash);
    ~PrefixIndex();
    PrefixIndex(const PrefixIndex&) = delete;
    PrefixIndex& operator=(const PrefixIndex&) = delete;

    // Lists the pages of a text. Page i holds the rows of tokens [i * page_rows, ...); the last
    // page may be filled only in part. The caller has a use of every page and keeps it. Makes the
    // pages of the text the most recently used.
    //
    // Where a listed page already holds the same tokens, it stays and the caller's is not listed.
    // Where one holds only a beginning of them, the caller's takes its place: this is how a partly
    // filled page is extended.
    // Where several hold the tokens of a last page and more, the one listed first is used.
    void insert(std::span<const Token> tokens, std::span<const PageId> pages);

    struct Match {
        std::vector<PageId> pages;  // whole pages, in order
        PageId partial = -1;        // a page whose first n_partial rows continue them; -1: none
        int n_partial = 0;
    };
    // The longest beginning of `tokens` whose rows are listed. The caller gets a use of every page
    // returned, the partial one too, and must release it. Makes them the most recently used. Where
    // several pages have the same partial rows, the one listed first is used.
    Match find(std::span<const Token> tokens);

    // How many rows of a page are promised to finders, who trust that they are not overwritten; 0:
    // the page is not listed. A page that is not listed any more may still have users.
    int n_promised(PageId page) const;
    // Drops a page, if it is listed, and all pages that follow it, because its owner is about to
    // overwrite its rows.
    void forget(PageId page);
    // Drops the least recently used of the pages that only the index uses and that no listed page
    // follows; false: there is none. Looks past those that are in use, one by one.
    bool evict_one();
    void clear();  // drops everything

    int n_listed() const { return n_listed_; }
    int n_evictable() const;  // pages that repeated evict_one() would free; looks at all of them

  private:
    struct Entry {
        std::vector<Token> tokens;  // of its rows; none: not listed
        PageId before = -1;         // the page that it follows, or the root
        std::vector<PageId> after;  // the pages that follow it
        std::uint64_t key = 0;      // of whole pages
        std::uint64_t last_use = 0;
    };
    struct Closest {
        PageId page = -1;
        std::size_t n_common = 0;  // tokens
    };
    using LeafUse = std::pair<std::uint64_t, PageId>;  // its last use; the page

    // The part of `tokens` that page number `i` of a text holds.
    std::span<const Token> piece(std::span<const Token> tokens, std::size_t i) const;
    PageId find_whole(PageId before, std::span<const Token> tokens) const;  // -1: not listed
    // The page after `before` that shares the longest beginning with `tokens`.
    Closest find_closest(PageId before, std::span<const Token> tokens) const;
    // Returns the page that is listed for the tokens: `page`, or one that holds them already.
    PageId list(PageId before, std::span<const Token> tokens, PageId page);
    void add(PageId before, std::span<const Token> tokens, PageId page);
    void drop_leaf(PageId page);
    void touch(PageId page);

    Entry& entry(PageId page) { return entries_[static_cast<std::size_t>(page)]; }
    const Entry& entry(PageId page) const { return entries_[static_cast<std::size_t>(page)]; }
    bool is_whole(PageId page) const { return entry(page).tokens.size() == page_rows_; }

    PagePool& pool_;
    std::size_t page_rows_;
    PageHash hash_;
    PageId root_;                 // the number after the last page; stands before every text
    std::vector<Entry> entries_;  // by page, then the root
    std::unordered_multimap<std::uint64_t, PageId> whole_;  // by key
    std::set<LeafUse> leaves_;  // listed pages that none follows, least recently used first
    std::uint64_t now_ = 0;     // calls so far that used pages
    int n_listed_ = 0;
};

}  // namespace knap
