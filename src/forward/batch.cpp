#include "forward/batch.h"

#include <algorithm>

namespace knap {

bool can_share_pass(const RowRun& a, const RowRun& b) {
    const ForwardRequest& one = a.request;
    const ForwardRequest& other = b.request;
    return one.bank.n_numbers() == 0 && other.bank.n_numbers() == 0 &&
           one.entry_layer == other.entry_layer && one.exit_layer == other.exit_layer &&
           one.tokens.empty() == other.tokens.empty() && a.reduced_head == b.reduced_head &&
           (one.plan == other.plan || *one.plan == *other.plan);
}

bool may_be_unwanted(std::span<const RowRun* const> runs) {
    return std::ranges::all_of(
        runs, [](const RowRun* run) { return run->is_cancelled != nullptr && *run->is_cancelled; });
}

bool are_unwanted(std::span<const RowRun* const> runs) {
    return std::ranges::all_of(runs, &RowRun::is_unwanted);
}

void set_pass_facts(std::span<RowRun* const> runs, double ms) {
    const auto is_prompt = [](const RowRun* run) { return run->request.kind == PassKind::prompt; };
    const auto n_tokens = [&](const RowRun* run) { return is_prompt(run) ? run->n_rows : 1; };
    int n_rows = 0;
    int n_all_tokens = 0;
    int n_prompts = 0;
    for (const RowRun* run : runs) {
        n_rows += run->n_rows;
        n_all_tokens += n_tokens(run);
        n_prompts += is_prompt(run) ? 1 : 0;
    }
    for (const RowRun* run : runs) {
        run->result->pass = {.n_others = n_rows - run->n_rows,
                             .n_other_tokens = n_all_tokens - n_tokens(run),
                             .reads_prompts = n_prompts > (is_prompt(run) ? 1 : 0),
                             .ms = ms};
    }
}

}  // namespace knap
