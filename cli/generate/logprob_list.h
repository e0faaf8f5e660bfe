// `knap run --logprobs N --json`: the log-probabilities of an answer, as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "knap/knap.h"

#include "cli/flags/flags.h"

namespace knap {

// Warns when the log-probabilities are wanted and cannot be shown. Returns whether to collect them.
bool lists_logprobs(const Settings& settings);

class LogprobList {
  public:
    explicit LogprobList(const Engine& engine) : engine_(engine) {}

    void add(const TokenEvent& event);
    // [{"token", "text", "logprob", "top": [{"token", "text", "logprob"}, ...]}, ...], one entry
    // per token of the answer.
    const nlohmann::ordered_json& entries() const { return entries_; }

  private:
    nlohmann::ordered_json entry(const TokenLogprob& token) const;

    const Engine& engine_;
    nlohmann::ordered_json entries_ = nlohmann::ordered_json::array();
};

}  // namespace knap
