// Runs one request as a user at a terminal expects: with a progress bar during prefill, streamed
// text, and Ctrl-C.
#pragma once

#include <functional>
#include <span>

#include "knap/knap.h"

#include "cli/generate/answer_output.h"
#include "cli/interrupt.h"

namespace knap {

struct Request {
    std::span<const Token> prompt;
    const GenerateOptions& options;
    AnswerOutput* output;      // receives the text as it is generated; null: nothing does
    bool shows_draft = false;  // colours tokens by their origin
    std::function<void(const TokenEvent&)> on_token{};  // as in Observer; may be empty
};

// Ends early, with StopReason::cancelled, on a signal in `scope` or when the reader of the output
// has closed the pipe.
Result generate(Session& session, const Request& request, const InterruptScope& scope);

}  // namespace knap
