// What becomes of the process when a worker does not answer. ggml aborts it when a connection
// breaks, and waits for ever where none does; here both end with one line on standard error and
// exit code 1.
#pragma once

#include <string>

namespace knap {

// Of a worker that is being connected to: ends the process unless it has answered, and so the
// object is gone, within some seconds. At most one at a time.
class AnswerDeadline {
  public:
    explicit AnswerDeadline(const std::string& worker);
    ~AnswerDeadline();
    AnswerDeadline(const AnswerDeadline&) = delete;
    AnswerDeadline& operator=(const AnswerDeadline&) = delete;

    // From now on the worker may be lost.
    void answered() const;
};

}  // namespace knap
