#include "tools/measure/measure_prompts.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "tools/measure/race_options.h"

namespace knap {
namespace {

bool is_of(const BenchRow& row, const BenchPrompt& prompt) {
    return row.data == prompt.data && row.id == prompt.id && row.depth == prompt.depth;
}

// Rejects rows of a different text under the same name.
void check_length(const BenchRow& row, const BenchPrompt& prompt) {
    const auto n_prompt = static_cast<int>(prompt.tokens.size());
    if (row.n_prompt != n_prompt || row.n_document_tokens != prompt.n_document_tokens) {
        fail("--resume: prompt ", prompt.id, " of ", prompt.data, ": expected ", n_prompt, " of ",
             prompt.n_document_tokens, " tokens, found ", row.n_prompt, " of ",
             row.n_document_tokens, " in the file");
    }
}

// Empty when any row is missing: contenders are measured in turn, so all of them are measured
// again.
std::vector<BenchRow> rows_of(std::span<const BenchRow> known,
                              const BenchPrompt& prompt,
                              std::size_t n_expected) {
    std::vector<BenchRow> rows;
    for (const BenchRow& row : known) {
        if (is_of(row, prompt)) {
            check_length(row, prompt);
            rows.push_back(row);
        }
    }
    return rows.size() == n_expected ? rows : std::vector<BenchRow>();
}

}  // namespace

void measure_prompts(std::span<const BenchPrompt> prompts,
                     std::span<const BenchRow> known,
                     const MeasurePrompt& measure,
                     BenchReport& report,
                     const OnRows& on_rows) {
    report.is_complete = false;
    for (const BenchPrompt& prompt : prompts) {
        std::optional<PromptOutcome> outcome =
            PromptOutcome{.rows = rows_of(known, prompt, report.settings.n_rows())};
        const bool is_new = outcome->rows.empty();
        if (is_new) {
            outcome = measure(prompt);
        }
        if (!outcome) {
            return;
        }
        if (outcome->rows.empty()) {
            report.skipped.push_back({place_of(prompt), outcome->skipped_because});
        }
        const std::size_t n_before = report.rows.size();
        std::ranges::move(outcome->rows, std::back_inserter(report.rows));
        on_rows(std::span(report.rows).subspan(n_before), is_new);
    }
    report.is_complete = true;
}

}  // namespace knap
