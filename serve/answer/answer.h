// The JSON of an answer, whole or in chunks, in the shape of one endpoint. An object of this type
// serves one request, on one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/answer/logprobs_json.h"
#include "serve/api/json.h"
#include "serve/engine/job.h"

namespace knap {

// What every object of an answer repeats.
struct AnswerHead {
    std::string id{};
    std::string object{};  // "chat.completion", ...
    std::string model{};
    std::string fingerprint{};
    std::int64_t created = 0;

    // The members above and `choices`.
    Json with_choices(Json choices) const;
};

// Why an answer ended, as OpenAI says it: "stop" or "length".
std::string finish_reason(const JobEnd& end);

class Answer {
  public:
    virtual ~Answer() = default;

    // Chunks that open a choice of a stream.
    virtual std::vector<Json> begin(int choice) = 0;
    // What was added to a choice. Returns the chunks of a stream. There may be none: text that
    // could still become something else waits.
    virtual std::vector<Json> add(int choice, AnswerPart part) = 0;
    // The choice is complete; `end.rest` has been added.
    virtual std::vector<Json> finish(int choice, const JobEnd& end) = 0;
    // A chunk without choices, for the figures.
    virtual Json empty_chunk() const = 0;
    // The whole answer, without figures, when every choice is complete.
    virtual Json whole() const = 0;
    // What a complete choice has of reasoning.
    virtual std::string reasoning(int choice) const = 0;
};

}  // namespace knap
