// Shows a running benchmark: each row on standard output as soon as it is measured, and a progress
// bar with the remaining time on standard error.
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
    // Null `output`: rows are not shown. `step`: what there are `n_steps` of, for the bar.
    BenchScreen(std::size_t n_steps, TextOutput* output, const char* step = "prompt");

    // Sets the measured share of the current step, or how many more steps are measured.
    void update(double fraction);
    // Call one of these after each prompt: it has rows, or was skipped.
    void add_rows(std::span<const BenchRow> rows);
    void skip(const SkippedPrompt& prompt);
    // Shows the means, or what was achieved with several sessions at once.
    void finish(const BenchReport& report);

  private:
    std::string note(double n_done) const;
    void write_table(const BenchTable& table, std::span<const int> widths);
    void write_lines(const BenchTable& table, std::span<const int> widths);

    std::size_t n_steps_;
    TextOutput* output_;
    const char* step_;
    ProgressBar bar_;
    std::size_t n_done_ = 0;
    bool has_headings_ = false;
    // Runs since the first measurement. The `n_known_` prompts before it came from a file and took
    // no time, so the estimate leaves them out.
    std::optional<Stopwatch> watch_;
    std::size_t n_known_ = 0;
};

}  // namespace knap
