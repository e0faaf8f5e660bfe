// Checks whether passes are batch-invariant: whether a row's result depends on the rows computed
// beside it. Speculation verifies many rows at once and promises the text of one row at a time, so
// that promise rests on this property. The result depends on the kernels for the model's weight
// types, and so on the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "knap/knap.h"

#include "tools/check/check.h"

namespace knap {

// Batches of up to `n_exact` rows are bit-identical to single rows; `n_tested` is the largest batch
// tried.
struct RowAgreement {
    int n_exact = 1;
    int n_tested = 1;
    bool is_complete() const { return n_exact == n_tested; }
};

// The matrices of one type, shape and layout; one of them is multiplied with random rows.
struct ProductRows {
    std::string type;    // "Q4_1"
    std::string layout;  // "plain", "repacked", "packed" or "other"
    std::int64_t n_in = 0;
    std::int64_t n_out = 0;
    int n_matrices = 0;
    RowAgreement rows;
};

struct RowReport {
    std::vector<ProductRows> products;  // in the order of the model
    RowAgreement passes;                // the whole model: logits of every row
    std::string attention_path;         // "kernel", "folded" or "flash"
};

// Runs whole passes on `tokens`, at least one. Returns nullopt when cancelled.
std::optional<RowReport> check_rows(Engine& engine,
                                    std::span<const Token> tokens,
                                    const CheckObserver& observer);

}  // namespace knap
