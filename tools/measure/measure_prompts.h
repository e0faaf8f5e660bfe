// Measures the prompts of a benchmark one after the other, and resumes an earlier run.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/measure/report/bench_report.h"

namespace knap {

// The result of measuring one prompt.
struct PromptOutcome {
    std::vector<BenchRow> rows{};   // every strategy with every rule, in the order of the report
    std::string skipped_because{};  // the reason, when there are no rows
};

// Returns nullopt when cancelled. Throws when a text that must equal plain decoding's does not.
using MeasurePrompt = std::function<std::optional<PromptOutcome>(const BenchPrompt& prompt)>;

// `is_new`: measured in this run, not taken from an earlier one.
using OnRows = std::function<void(std::span<const BenchRow> rows, bool is_new)>;

// Adds the rows of all prompts to the report, in order. A prompt whose rows are all in `known`, the
// rows of an earlier run, is not measured again. Calls `on_rows` after each prompt with the rows
// added to the report. Sets `is_complete`, which stays false when cancelled.
void measure_prompts(std::span<const BenchPrompt> prompts,
                     std::span<const BenchRow> known,
                     const MeasurePrompt& measure,
                     BenchReport& report,
                     const OnRows& on_rows);

}  // namespace knap
