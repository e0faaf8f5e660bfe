#include "forward/batch.h"

namespace knap {

bool can_share_pass(const RowRun& a, const RowRun& b) {
    const ForwardRequest& one = a.request;
    const ForwardRequest& other = b.request;
    return one.bank.n_numbers() == 0 && other.bank.n_numbers() == 0 &&
           one.entry_layer == other.entry_layer && one.exit_layer == other.exit_layer &&
           one.tokens.empty() == other.tokens.empty() && a.reduced_head == b.reduced_head &&
           (one.plan == other.plan || *one.plan == *other.plan);
}

void set_pass_facts(std::span<RowRun* const> runs, double ms) {
    int n_rows = 0;
    for (const RowRun* run : runs) {
        n_rows += run->n_rows;
    }
    for (const RowRun* run : runs) {
        run->result->pass = {.n_others = n_rows - run->n_rows, .ms = ms};
    }
}

}  // namespace knap
