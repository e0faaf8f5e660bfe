#include "cli/bench/measure.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "cli/bench/output.h"
#include "cli/bench/prompts.h"
#include "cli/bench/screen.h"
#include "cli/interrupt.h"
#include "tools/measure/measure_prompts.h"
#include "tools/measure/parallel_race.h"
#include "tools/measure/strategy_race.h"
#include "tools/profile/memory_reader.h"

namespace knap {
namespace {

// Runs last: it allocates a gigabyte, which must not count in the peak memory of any row.
std::optional<double> measure_memory(const BenchReport& report, const EarlierRows& earlier) {
    if (earlier.memory_gb_per_second || !report.is_complete) {
        return earlier.memory_gb_per_second;
    }
    try {
        return memory_gb_per_second(report.settings.threads);
    } catch (const Error& error) {
        log_warning("the memory bandwidth is not measured: ", error.what());
        return std::nullopt;
    }
}

// Whether the user or a closed output ends the run.
class StopSignal {
  public:
    explicit StopSignal(const TextOutput* output) : output_(output) {}
    bool is_set() const {
        return scope_.signal() != 0 || (output_ != nullptr && output_->is_closed());
    }

  private:
    InterruptScope scope_;
    const TextOutput* output_;
};

}  // namespace

void measure_in_turn(Engine& engine,
                     const RaceOptions& options,
                     const std::vector<BenchPrompt>& prompts,
                     const EarlierRows& earlier,
                     const std::vector<std::filesystem::path>& outputs,
                     TextOutput* output,
                     BenchReport& report) {
    BenchScreen screen(prompts.size(), output);
    const StopSignal stop(output);
    StrategyRace race(engine, options,
                      {.on_progress = [&](double fraction) { screen.update(fraction); },
                       .is_cancelled = [&] { return stop.is_set(); }});
    measure_prompts(
        prompts, earlier.rows, [&](const BenchPrompt& prompt) { return race.measure(prompt); },
        report,
        [&](std::span<const BenchRow> rows, bool is_new) {
            if (rows.empty()) {
                screen.skip(report.skipped.back());
            } else {
                screen.add_rows(rows);
            }
            if (is_new) {
                write_outputs(outputs, report);
            }
        });
    report.memory_gb_per_second = measure_memory(report, earlier);
    write_outputs(outputs, report);
    screen.finish(report);
}

void measure_together(Engine& engine,
                      const RaceOptions& options,
                      const std::vector<BenchPrompt>& prompts,
                      const std::vector<std::filesystem::path>& outputs,
                      TextOutput* output,
                      BenchReport& report) {
    BenchScreen screen(n_loads(options), output, "load");
    const StopSignal stop(output);
    ParallelRace race(engine, options,
                      {.on_progress = [&](double n_done) { screen.update(n_done); },
                       .is_cancelled = [&] { return stop.is_set(); }});
    if (auto outcome = race.measure(prompts)) {
        for (SkippedPrompt& skipped : outcome->skipped) {
            log_skipped(skipped);
            report.skipped.push_back(std::move(skipped));
        }
        report.rows = std::move(outcome->rows);
        report.loads = std::move(outcome->loads);
        report.is_complete = true;
    }
    report.memory_gb_per_second = measure_memory(report, {});
    write_outputs(outputs, report);
    screen.finish(report);
}

}  // namespace knap
