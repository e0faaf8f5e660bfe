// The command that repeats the measurements of a file.
#pragma once

#include <string>

#include "cli/report/file.h"

namespace knap {

// Quoted for a shell. Leaves out settings that were not given.
std::string rerun_command(const ReportFile& file);

}  // namespace knap
