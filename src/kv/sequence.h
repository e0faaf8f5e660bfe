// The rows of one text: keys and values of every layer, in pages that the sequence takes as it
// grows. Rows below committed() are final; rows above are scratch, which the next pass may
// overwrite. truncate(n) rolls back and copies or clears nothing.
//
// Pages may be shared with the prefix cache and with other sequences that have the same beginning.
// Rows that somebody else counts on are never overwritten: reserve() gives the sequence its own
// copy first.
//
// A sequence belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "kv/kv_memory.h"

namespace knap {

class Sequence {
  public:
    // For at most `capacity` rows; takes no page yet. `memory` must outlive the sequence.
    Sequence(KvMemory& memory, int capacity);
    ~Sequence();  // returns the pages
    Sequence(const Sequence&) = delete;
    Sequence& operator=(const Sequence&) = delete;

    KvMemory& memory() const { return memory_; }
    int capacity() const { return capacity_; }
    int committed() const { return committed_; }
    void commit(int n_rows);    // rows [0, n_rows) are final; never below committed()
    void truncate(int n_rows);  // rows from n_rows on are scratch again
    // Copies row `from` over row `to`, which must be scratch, in every layer.
    void copy_row(int from, int to);

    // Takes pages so that rows [committed(), n_rows) can be written: free ones, then those that
    // only the prefix cache uses. Returns false, and takes none, if there are not enough.
    bool reserve(int n_rows);
    // The same with pages that are free, as far as there are.
    void reserve_if_free(int n_rows);
    // Whether rows [committed(), n_rows) can be written already.
    bool is_reserved(int n_rows) const { return !may_share_ && n_rows <= n_reserved(); }
    int n_reserved() const { return static_cast<int>(pages_.size()) * memory_.page_rows(); }
    // Returns the pages that hold no committed row.
    void return_scratch();
    // Returns all pages; nothing is committed any more.
    void release();

    // Shares the committed rows of another sequence of the same memory. This one must be empty.
    void fork_from(const Sequence& other);
    // Replaces the rows by the longest beginning of `tokens` that the prefix cache has, if that is
    // more than the committed rows, which must be those of a beginning of `tokens`. Returns how
    // many rows were gained; all are committed.
    int adopt_prefix(std::span<const Token> tokens);
    // Lists the committed rows, those of `tokens`, in the prefix cache: whole pages, and with
    // `with_last` the last page as far as it is filled. Whole pages that the prefix cache had
    // already replace those of this sequence. Returns the number of rows listed.
    int publish_prefix(std::span<const Token> tokens, bool with_last);

    std::span<const PageId> pages() const { return pages_; }
    // Where a row is in the stores.
    int stored_row(int row) const {
        const int page_rows = memory_.page_rows();
        return pages_[static_cast<std::size_t>(row / page_rows)] * page_rows + row % page_rows;
    }

    // --- for saving: the first rows of a layer, kSavedRows at a time: see KvStore ---
    static constexpr int kSavedRows = 256;  // a page is a multiple of it
    std::size_t saved_row_bytes() const { return memory_.saved_row_bytes(); }
    void read_rows(int layer, int n_rows, std::byte* out) const;
    void write_rows(int layer, int n_rows, const std::byte* in);

  private:
    std::size_t pages_for(int n_rows) const;
    std::vector<StoredRows> stored_rows(int n_rows) const;
    bool is_counted_on(PageId page, int n_rows) const;
    bool own_pages();
    bool own_page(std::size_t index, int n_kept);
    void use_listed_pages(std::span<const Token> tokens);
    std::optional<PageId> take_page();

    KvMemory& memory_;
    int capacity_;
    int committed_ = 0;
    bool may_share_ = false;  // a page with rows above the committed ones
    std::vector<PageId> pages_;
};

}  // namespace knap
