// Requests that several sessions of an engine answer at once. Each must get the text that plain
// decoding writes for it alone.
#pragma once

#include <vector>

#include "knap/knap.h"

namespace knap::test {

struct SharedRequest {
    std::vector<Token> prompt;
    GenerateOptions options{};
    int n_wanted = -1;       // cancelled after this many tokens; -1: never
    int n_polls = -1;        // cancelled when it was asked this often whether it is; -1: never
    bool continues = false;  // on a session that keeps what it answered before

    bool may_be_cancelled() const { return n_wanted >= 0 || n_polls >= 0; }
};

// Requests of several strategies, greedy and sampled, with prompts of mixed lengths, some of which
// begin alike, for a model with at least 256 tokens and a context of `n_ctx`.
std::vector<SharedRequest> mixed_requests(int n, int n_ctx);

// What plain decoding writes for each of the requests, one after the other, on an engine that
// serves nobody else and has no prefix cache.
std::vector<std::vector<Token>> texts_alone(RuntimeConfig config,
                                            const std::vector<SharedRequest>& requests);

// `observer` may watch, but not cancel.
Result answer(Session& session, const SharedRequest& request, const Observer& observer = {});
// Fails the test unless the result has the text `expected`, or a beginning of it if the request was
// cancelled.
void expect_text(const SharedRequest& request,
                 const Result& result,
                 const std::vector<Token>& expected);

// Serves the requests, none of which is cancelled or continues another, on `n_sessions` sessions at
// once, and compares their texts with texts_alone().
void expect_texts_of_plain_decoding(RuntimeConfig config,
                                    int n_sessions,
                                    const std::vector<SharedRequest>& requests);

}  // namespace knap::test
