#include "cli/generate/logprob_list.h"

#include <utility>

#include "base/log.h"

namespace knap {

bool lists_logprobs(const Settings& settings) {
    const bool are_wanted = settings.generate.n_logprobs >= 0;
    if (are_wanted && !settings.wants_json) {
        log_warning("--logprobs: only --json has log-probabilities, so none are shown");
    }
    return are_wanted && settings.wants_json;
}

void LogprobList::add(const TokenEvent& event) {
    auto top = nlohmann::ordered_json::array();
    for (const TokenLogprob& token : event.top) {
        top.push_back(entry(token));
    }
    auto object = entry({event.token, event.logprob});
    object["top"] = std::move(top);
    entries_.push_back(std::move(object));
}

// The text of a token may be part of a character: see json_output.h.
nlohmann::ordered_json LogprobList::entry(const TokenLogprob& token) const {
    return {{"token", token.token},
            {"text", engine_.detokenize({&token.token, 1})},
            {"logprob", token.logprob}};
}

}  // namespace knap
