// A benchmark as it runs: a line for each row on standard output as soon as it is known, and a bar
// with the time that is left on standard error.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "cli/generate/text_output.h"
#include "cli/progress.h"
#include "tools/measure/report/bench_report.h"
#include "tools/measure/report/bench_table.h"

namespace knap {

class BenchScreen {
  public:
    // Without `output` rows are not shown.
    BenchScreen(std::size_t n_prompts, TextOutput* output);

    // `fraction` of the prompt at hand is measured.
    void update(double fraction);
    // A prompt is done: it has rows, or could not be measured.
    void add_rows(std::span<const BenchRow> rows);
    void skip(const SkippedPrompt& prompt);
    // The means at the end.
    void finish(const BenchReport& report);

  private:
    std::string note(double n_done) const;

    std::size_t n_prompts_;
    TextOutput* output_;
    ProgressBar bar_;
    std::size_t n_done_ = 0;
    bool has_headings_ = false;
    // Since measuring began, with so many prompts known before: rows of a file take no time.
    std::optional<Stopwatch> watch_;
    std::size_t n_known_ = 0;
};

// "1:05:10 left", "0:42 left".
std::string time_left(double seconds);

}  // namespace knap
