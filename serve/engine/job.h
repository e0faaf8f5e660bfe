// One answer to generate: what a session is asked for, and what it tells while it runs.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "knap/types.h"

namespace knap {

// A token of an answer, with what was asked for beside it.
struct AnswerToken {
    Token token = 0;
    TokenOrigin origin = TokenOrigin::plain;
    float logprob = 0;
    std::vector<TokenLogprob> top{};
};

// What one round added to an answer.
struct AnswerPart {
    std::string text{};  // whole characters; may be empty
    std::vector<AnswerToken> tokens{};
    DraftSource source = DraftSource::none;
    std::string plan{};  // that drafted; empty: none
    int n_drafted = 0;
    int n_accepted = 0;
};

enum class JobOutcome {
    done,
    cancelled,  // by the caller
    expired,    // ran out of time: the answer so far counts
    failed,
};

struct JobEnd {
    JobOutcome outcome = JobOutcome::done;
    Result result{};    // of a job that was started, except a failed one
    AnswerPart rest{};  // text that was held back until the end
    double queue_ms = 0;
};

// The callbacks run on the session's thread and must not wait, except for `wait_for_reader`.
struct Job {
    std::vector<Token> prompt{};
    GenerateOptions options{};
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    std::function<void(int done, int total)> on_progress{};  // of the prompt
    std::function<void(AnswerPart part)> on_part{};
    // Called after every part. It may wait while a reader is slow; `gives_up` says when the job was
    // cancelled meanwhile.
    std::function<void(const std::function<bool()>& gives_up)> wait_for_reader{};
    // Exactly once, when the session is free for the next job. On the session's thread, or on the
    // thread that cancels a job that waits.
    std::function<void(JobEnd end)> on_end{};
};

}  // namespace knap
