// Serves requests on several sessions at once, a thread each, and records when every token came.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "knap/knap.h"

#include "tools/measure/load/load_times.h"

namespace knap {

struct LoadRequest {
    std::span<const Token> prompt;
    GenerateOptions options{};
    bool has_fresh_strategies = false;  // the session first forgets what its strategies learned
    // Polled before the request starts, until it is true. Empty: starts at once.
    std::function<bool()> may_start{};
};

struct ServedRequest {
    Result result{};
    TokenTimes times{};
};

// Members may be empty. Called on the threads of the sessions, `is_cancelled` also on compute
// threads.
struct LoadObserver {
    std::function<void(std::size_t request)> on_token{};
    std::function<void(std::size_t request)> on_done{};  // one call at a time
    std::function<bool()> is_cancelled{};
};

// Answers every request once: each session takes the next one when it is done with the last. The
// sessions start together. Returns the answers in the order of the requests; when cancelled, some
// are cut short or empty. When a request fails, cancels the others and throws its error.
std::vector<ServedRequest> serve(std::span<Session> sessions,
                                 std::span<const LoadRequest> requests,
                                 const LoadObserver& observer = {});

std::vector<TokenTimes> times_of(std::span<const ServedRequest> served);

// Answers `text` with a few tokens on every session, because the first passes build graphs and
// touch memory. The text should not begin like that of a request.
void warm_up(std::span<Session> sessions, std::span<const Token> text);

std::vector<Session> open_sessions(Engine& engine, int n_sessions);

// Loads the model of an engine again, so that no load finds rows of an earlier one in its cache. No
// session may be open.
void load_again(Engine& engine);

}  // namespace knap
