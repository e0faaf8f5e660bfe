#include "graph/pass_results.h"

#include <algorithm>

#include "forward/choices.h"
#include "model/head_subset.h"

namespace knap {
namespace {

void deliver_logits(const RowRun& run, std::span<const float> logits) {
    RunResult& result = *run.result;
    if (run.reduced_head != nullptr) {
        run.reduced_head->spread(logits, result.logits);
    } else if (!run.request.chooses) {
        result.logits.assign(logits.begin(), logits.end());
    }
    if (run.request.chooses) {
        const auto n_rows = static_cast<int>(run.request.logit_rows.size());
        append_choices(run.reduced_head != nullptr ? result.logits : logits, n_rows,
                       result.choices);
        result.logits.clear();
    }
}

}  // namespace

void deliver(const ModelConfig& config, const PassRows& rows, const PassOutputs& outputs) {
    const auto n_embd = static_cast<std::size_t>(config.n_embd);
    const std::size_t n_out =
        outputs.n_logit_rows > 0
            ? outputs.logits.size() / static_cast<std::size_t>(outputs.n_logit_rows)
            : 0;
    std::size_t logit_row = 0;
    for (std::size_t i = 0; i < rows.runs.size(); ++i) {
        const RowRun& run = rows.run(i);
        RunResult& result = *run.result;
        const std::size_t n_logits = run.request.logit_rows.size();
        const auto first = static_cast<std::size_t>(rows.first[i]) * n_embd;
        const std::size_t n_values = static_cast<std::size_t>(run.n_rows) * n_embd;
        result.logits.clear();
        result.choices.clear();
        result.best.clear();
        result.best_ends.clear();
        if (run.request.n_best > 0) {
            for (std::size_t row = logit_row; row < logit_row + n_logits; ++row) {
                const auto best = outputs.best.row(row);
                result.best.insert(result.best.end(), best.begin(), best.end());
                result.best_ends.push_back(static_cast<int>(result.best.size()));
            }
        } else if (run.request.chooses && !outputs.choices.empty()) {
            const auto own = outputs.choices.subspan(logit_row, n_logits);
            result.choices.assign(own.begin(), own.end());
        } else if (n_logits > 0) {
            deliver_logits(run, outputs.logits.subspan(logit_row * n_out, n_logits * n_out));
        }
        logit_row += n_logits;
        const auto copy_rows = [&](std::span<const float> all, std::vector<float>& own) {
            const auto part = all.subspan(first, n_values);
            own.assign(part.begin(), part.end());
        };
        result.captures.resize(outputs.captures.empty() ? 0 : run.request.captures.size());
        for (std::size_t c = 0; c < result.captures.size(); ++c) {
            const auto at = std::ranges::lower_bound(rows.captures, run.request.captures[c]);
            copy_rows(outputs.captures[static_cast<std::size_t>(at - rows.captures.begin())],
                      result.captures[c]);
        }
        result.cosines.assign(outputs.cosines.begin(), outputs.cosines.end());
        if (!outputs.stream.empty()) {
            copy_rows(outputs.stream, result.stream);
        }
    }
}

}  // namespace knap
