// What people call a model, for headings: "SmolLM2 135M Instruct, Q4_1".
#pragma once

#include <string>

#include "tools/measure/report/bench_report.h"

namespace knap {

// From the file's name where that follows the usual form NAME-SIZE-..., such as
// "SmolLM2-135M-Instruct.Q4_1.gguf"; else from the name inside the file, which is often one of its
// makers' own; else from any file name. Size and type follow where they are known and not said yet.
std::string model_title(const BenchModel& model);

}  // namespace knap
