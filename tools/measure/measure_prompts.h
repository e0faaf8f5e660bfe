// The prompts of a benchmark, one after the other, and going on where an earlier run ended.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/measure/report/bench_report.h"

namespace knap {

// What became of a prompt.
struct PromptOutcome {
    std::vector<BenchRow> rows{};   // of every strategy with every rule, in the order of the report
    std::string skipped_because{};  // in words, where there are no rows
};

// Nullopt: cancelled. Throws where a text is not plain decoding's.
using MeasurePrompt = std::function<std::optional<PromptOutcome>(const BenchPrompt& prompt)>;

// `is_new`: measured now.
using OnRows = std::function<void(std::span<const BenchRow> rows, bool is_new)>;

// Adds the rows of all prompts to the report, in their order. Prompts of which `known`, the rows of
// an earlier run, has every row are not measured again. `on_rows` hears, prompt by prompt, of the
// rows that were added to the report. Sets is_complete; it stays false when cancelled.
void measure_prompts(std::span<const BenchPrompt> prompts,
                     std::span<const BenchRow> known,
                     const MeasurePrompt& measure,
                     BenchReport& report,
                     const OnRows& on_rows);

}  // namespace knap
