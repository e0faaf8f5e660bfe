#include "support/rounding_error.h"

#include <algorithm>
#include <cmath>

#include "support/logits.h"

namespace knap::test {

RoundingError difference(const std::vector<std::vector<float>>& rows,
                         const std::vector<std::vector<float>>& expected) {
    RoundingError error;
    double squares = 0;
    double size = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double largest = max_abs_difference(rows[i], expected[i]);
        error.max_abs =
            largest <= error.max_abs ? error.max_abs : largest;  // a NaN wins, and stays
        for (std::size_t j = 0; j < expected[i].size(); ++j) {
            squares += std::pow(double{rows[i][j]} - expected[i][j], 2);
            size += std::pow(double{expected[i][j]}, 2);
        }
    }
    error.relative = std::sqrt(squares / size);
    return error;
}

RoundingError rounding_error(LoadedModel& model, std::span<const Token> tokens, Factors factors) {
    const int n_ctx = static_cast<int>(tokens.size() + 255) / 256 * 256;
    return difference(ReferenceForward(model, n_ctx, factors).feed(tokens),
                      ReferenceForward(model, n_ctx, Factors::f32).feed(tokens));
}

}  // namespace knap::test
