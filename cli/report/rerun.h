// The command that measures a file's rows again.
#pragma once

#include <string>

#include "cli/report/file.h"

namespace knap {

// For a shell: words that need quotes have them. Settings that were left alone are left out.
std::string rerun_command(const ReportFile& file);

}  // namespace knap
