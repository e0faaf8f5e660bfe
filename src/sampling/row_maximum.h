// Finds the largest logit of a row, and detects rows that cannot be sampled from.
#pragma once

#include <span>

#include "knap/types.h"

namespace knap {

struct RowMaximum {
    Token token;  // the lowest id among equals
    float logit;
};

// Some logits of a row.
struct LogitSummary {
    float maximum;  // of those that are numbers
    bool is_sound;  // no NaN, no +infinity
};
LogitSummary summarize(std::span<const float> logits);

// Throws knap::Error when a logit is NaN or +infinity, or when all are -infinity. The row must not
// be empty.
RowMaximum find_maximum(std::span<const float> logits);

}  // namespace knap
