// What PrefixIndex promises, by definition: a map from a text to the page with the rows of its end.
// Every answer looks at all listed texts.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "kv/prefix_index.h"

namespace knap::test {

using TokenText = std::vector<Token>;

// The number of tokens that both begin with.
std::size_t count_common(std::span<const Token> a, std::span<const Token> b);
bool begins_with(std::span<const Token> text, std::span<const Token> beginning);

class NaivePrefixIndex {
  public:
    using IsUsed = std::function<bool(PageId page)>;  // by others than the index

    explicit NaivePrefixIndex(std::size_t page_rows) : page_rows_(page_rows) {}

    void insert(const TokenText& text, std::span<const PageId> pages);
    PrefixIndex::Match find(const TokenText& text);
    void forget(PageId page);
    // The page that evict_one() has to drop next; nullopt: none.
    std::optional<PageId> next_evicted(const IsUsed& is_used) const;
    int n_evictable(const IsUsed& is_used) const;
    void clear() { listed_.clear(); }

    int n_listed() const { return static_cast<int>(listed_.size()); }
    // All tokens up to the end of the page's rows; null: not listed.
    const TokenText* text_of(PageId page) const;
    // The first row of the last page of a text.
    std::size_t first_row(const TokenText& text) const {
        return (text.size() - 1) / page_rows_ * page_rows_;
    }

  private:
    struct Listed {
        PageId page;
        int since;
        int last_use;
    };
    // A beginning of the text: its first pages, the last of which may be cut short.
    TokenText up_to_page(const TokenText& text, std::size_t i) const;
    // Of the pages at the same place as the end of `text`, those that share most of it, and of
    // these the one listed first. Null: none shares any.
    Listed* closest(const TokenText& text, std::size_t first, std::size_t& n_common);

    std::size_t page_rows_;
    std::map<TokenText, Listed> listed_;
    int now_ = 0;
};

}  // namespace knap::test
