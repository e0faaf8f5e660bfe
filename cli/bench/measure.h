// Measures the prompts of `knap bench` while it shows progress and rows, until all are done or the
// user stops it.
#pragma once

#include <filesystem>
#include <vector>

#include "knap/knap.h"

#include "cli/generate/text_output.h"
#include "tools/measure/race_options.h"
#include "tools/measure/report/bench_file.h"

namespace knap {

// Adds the rows of all prompts, measuring those that `earlier` lacks. Writes the files after every
// prompt.
void measure_in_turn(Engine& engine,
                     const RaceOptions& options,
                     const std::vector<BenchPrompt>& prompts,
                     const EarlierRows& earlier,
                     const std::vector<std::filesystem::path>& outputs,
                     TextOutput* output,
                     BenchReport& report);

// Adds the rows and loads of all prompts, served on several sessions at once.
void measure_together(Engine& engine,
                      const RaceOptions& options,
                      const std::vector<BenchPrompt>& prompts,
                      const std::vector<std::filesystem::path>& outputs,
                      TextOutput* output,
                      BenchReport& report);

}  // namespace knap
