#include "sampling/validate.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace knap {

namespace {

template <typename Value>
void require(bool holds, const char* flag, const char* expected, Value found) {
    if (!holds) {
        fail(flag, ": expected ", expected, ", found ", found);
    }
}

void validate_bias(const std::pair<Token, float>& entry, int n_vocab) {
    const auto& [token, bias] = entry;
    if (token < 0 || token >= n_vocab) {
        fail("`.logit_bias`: expected a token from 0 to ", n_vocab - 1, ", found ", token);
    }
    require(std::isfinite(bias) || bias == -std::numeric_limits<float>::infinity(), "`.logit_bias`",
            "a finite number or -inf", bias);
}

}  // namespace

void validate(const SamplingOptions& options, int n_vocab) {
    // Comparisons are written so that NaN fails them.
    const auto is_finite = [](float value) { return std::isfinite(value); };
    require(options.temperature >= 0.0f && is_finite(options.temperature), "`.temperature`",
            "a finite number of at least 0", options.temperature);
    require(options.top_k >= 0, "`.top_k`", "at least 0", options.top_k);
    require(options.top_p > 0.0f && options.top_p <= 1.0f, "`.top_p`",
            "a number above 0 and at most 1", options.top_p);
    require(options.min_p >= 0.0f && options.min_p <= 1.0f, "`.min_p`", "a number from 0 to 1",
            options.min_p);
    require(options.repeat_penalty > 0.0f && is_finite(options.repeat_penalty), "`.repeat_penalty`",
            "a finite number above 0", options.repeat_penalty);
    require(is_finite(options.presence_penalty), "`.presence_penalty`", "a finite number",
            options.presence_penalty);
    require(is_finite(options.frequency_penalty), "`.frequency_penalty`", "a finite number",
            options.frequency_penalty);
    require(options.repeat_last_n >= -1, "`.repeat_last_n`", "at least -1", options.repeat_last_n);
    for (const auto& entry : options.logit_bias) {
        validate_bias(entry, n_vocab);
    }
}

}  // namespace knap
