// How far rounding moves a model's logits: the reference for tests that compare two computations of
// the same logits. It is measured where the test runs, with the simplest pass
// (reference_forward.h), so that no code under test takes part in it.
#pragma once

#include <span>
#include <vector>

#include "support/loaded_model.h"
#include "support/reference_forward.h"

namespace knap::test {

struct RoundingError {
    double max_abs = 0;   // of one logit
    double relative = 0;  // root mean square of the differences, over that of the logits
};

// Compares rows of logits, [n_vocab] each, with the expected rows.
RoundingError difference(const std::vector<std::vector<float>>& rows,
                         const std::vector<std::vector<float>>& expected);

// Compares products with these factors with products that round nothing, by the logits of `tokens`
// in one pass. `model` must not be repacked.
RoundingError rounding_error(LoadedModel& model, std::span<const Token> tokens, Factors factors);

}  // namespace knap::test
