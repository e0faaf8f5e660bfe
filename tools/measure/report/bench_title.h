// The title of a model, for headings: "SmolLM2 135M Instruct, Q4_1".
#pragma once

#include <string>

#include "tools/measure/report/bench_report.h"

namespace knap {

// Uses the file's name if it has the usual form NAME-SIZE-..., such as
// "SmolLM2-135M-Instruct.Q4_1.gguf"; else the name inside the file, which is often one that only
// its makers know; else the file's name, whatever its form. Appends size and type when they are
// known and not yet part of the title.
std::string model_title(const BenchModel& model);

}  // namespace knap
