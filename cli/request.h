// One request with everything around it that a person at a terminal expects: a progress bar while
// the prompt is computed, text as it comes, and Ctrl-C.
#pragma once

#include <span>

#include "knap/knap.h"

#include "cli/generate/text_output.h"
#include "cli/interrupt.h"

namespace knap {

struct Request {
    std::span<const Token> prompt;
    const GenerateOptions& options;
    TextOutput* output;        // where text goes as it comes; null: nowhere
    bool shows_draft = false;  // whether colours tell where tokens came from
};

// Ends early, with StopReason::cancelled, on a signal of `scope` or when the reader of the output
// went away.
Result generate(Session& session, const Request& request, const InterruptScope& scope);

}  // namespace knap
