// Brings the cache of a session up to date with its text: finds rows in the prefix cache, computes
// the others, and computes rows again that were given up for older requests.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "knap/types.h"

#include "runtime/session_impl.h"

namespace knap {

class PromptReader {
  public:
    // `adopts_rows`: from the prefix cache. `is_cancelled` may be empty; it and `session` must
    // outlive the object.
    PromptReader(Session::Impl& session,
                 bool adopts_rows,
                 const std::function<bool()>& is_cancelled)
        : session_(session),
          adopts_rows_(adopts_rows && session.shares_prefixes),
          is_cancelled_(is_cancelled) {}

    // Computes and commits the rows of `tokens` that are missing, at least one. Returns the logits
    // after the last token, valid until the next pass; nullopt: cancelled. `on_progress` (may be
    // empty) is called after every pass with the number of committed rows.
    std::optional<std::span<const float>> read(
        std::span<const Token> tokens, const std::function<void(int n_rows)>& on_progress = {});

    // Before a round: pages for its rows, with every token of the history but the last committed.
    // False: cancelled.
    bool prepare_round();

    int n_adopted() const { return n_adopted_; }  // rows that came from the prefix cache

  private:
    bool adopt(std::span<const Token> tokens);
    void publish(std::span<const Token> tokens, int first_row);

    Session::Impl& session_;
    bool adopts_rows_;
    const std::function<bool()>& is_cancelled_;
    int n_adopted_ = 0;
};

}  // namespace knap
