// The figures that come with an answer: tokens counted as OpenAI does, times as llama.cpp's server
// gives them, and what speculation did.
#pragma once

#include <string>
#include <vector>

#include "knap/types.h"

#include "serve/api/json.h"

namespace knap {

// The end of one choice, as far as its figures go.
struct ChoiceFigures {
    Result result{};
    double queue_ms = 0;
    int n_reasoning = 0;  // tokens
    int prompt = 0;       // number of its prompt in the request
};

// {"prompt_tokens", "completion_tokens", "total_tokens", ...}. A prompt with several choices counts
// once. With a prediction, tokens copied as drafts count as accepted or rejected, wherever they
// were copied from.
Json usage_json(const std::vector<ChoiceFigures>& choices, bool has_prediction);

// {"cache_n", "prompt_n", "prompt_ms", ..., "predicted_per_second", "draft_n", ...}: sums over the
// choices.
Json timings_json(const std::vector<ChoiceFigures>& choices);

// The object `knap` of an answer.
Json speculation_json(const std::vector<ChoiceFigures>& choices,
                      const std::vector<std::string>& ignored,
                      bool has_decisions);

}  // namespace knap
