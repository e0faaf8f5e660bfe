// Hands the pages of the cache to sessions, and takes them back when they are short. What goes
// first: pages that only the prefix cache holds, least recently used first; then the pages of
// sessions without a request, those that ended first; then those of the youngest request, which
// waits and is computed again. Its text cannot change, because rows are the same whenever they are
// computed. The oldest request always goes on, so that all of them end.
//
// A request asks for pages only at its safe points, between rounds and between passes of its
// prompt: there it has committed rows and nothing else to lose.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "knap/types.h"

#include "kv/sequence.h"

namespace knap {

class PageSupply {
  public:
    explicit PageSupply(KvMemory& memory) : memory_(memory) {}

    // The pages of one session, for as long as the object lives.
    class Holder {
      public:
        Holder(PageSupply& supply, Sequence& sequence);
        ~Holder();
        Holder(const Holder&) = delete;
        Holder& operator=(const Holder&) = delete;

      private:
        friend class PageSupply;
        PageSupply& supply_;
        Sequence& sequence_;
        std::uint64_t age_ = 0;  // of the request, in order of arrival; 0: no request
        std::uint64_t end_ = 0;  // of the latest request, in order
        std::atomic<bool> must_yield_ = false;  // to an older request that waits for pages
        bool is_waiting_ = false;               // for pages
        std::span<const Token> prompt_{};       // that is being read; empty: none
        int n_read_ = 0;                        // its rows in the prefix cache
    };

    // A request of a session: while the object lives, nobody takes the session's pages except at
    // its safe points. Work in idle time has none and counts as the youngest request; after it the
    // session is as old as before.
    class Request {
      public:
        enum class Kind { answer, idle };
        explicit Request(Holder& holder, Kind kind = Kind::answer);
        ~Request();
        Request(const Request&) = delete;
        Request& operator=(const Request&) = delete;

      private:
        Holder& holder_;
        Kind kind_;
    };

    enum class Grant {
        ready,      // the pages are there
        lost,       // they are there, but committed rows were given up: compute them again
        cancelled,  // the request is not wanted any more
    };
    // At a safe point of a request: pages for rows [0, n_rows) of its sequence, and up to
    // `n_wished` as far as pages are free. Waits while they are short.
    Grant reserve(Holder& holder,
                  int n_rows,
                  int n_wished,
                  const std::function<bool()>& is_cancelled);

    // The same for work in idle time, which takes pages from nobody: false if too few are free.
    bool reserve_if_free(Holder& holder, int n_rows, int n_wished);

    // --- prompts with the same beginning ---
    // Says what prompt a request reads, so that others with the same beginning wait for its rows
    // instead of computing them too. The tokens must stay valid until the empty span is given.
    void set_prompt(Holder& holder, std::span<const Token> prompt);
    // Waits while an older request computes rows of the same beginning that this one lacks. Returns
    // false when cancelled.
    bool wait_for_shared_rows(Holder& holder, const std::function<bool()>& is_cancelled);
    // Replaces the rows of a request by those of the prefix cache, if it has more of `tokens`.
    // Returns how many more.
    int adopt(Holder& holder, std::span<const Token> tokens);
    // Lists the committed rows, those of `tokens`, in the prefix cache: see Sequence.
    void publish(Holder& holder, std::span<const Token> tokens, bool with_last);
    // Forgets all rows of a session.
    void release(Holder& holder);

  private:
    using Lock = std::unique_lock<std::mutex>;
    bool has_older_waiting(const Holder& holder) const;
    // Makes somebody give up pages; false: only this request itself could.
    bool reclaim(const Holder& holder);
    bool computes_shared_rows(const Holder& other, const Holder& holder) const;
    void wait(Lock& lock);

    KvMemory& memory_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t n_events_ = 0;  // requests that began or ended
    std::vector<Holder*> holders_;
};

}  // namespace knap
