// The command line: parses the words, runs the command, and turns every failure into one line on
// standard error and an exit code.
#pragma once

#include <string>
#include <vector>

#include "cli/environment.h"

namespace knap {

// `words` excludes the program's name. Returns the exit code: 0 done, 1 failed, 2 wrong usage, 130
// interrupted.
int run_cli(const std::vector<std::string>& words, const Environment& environment);

}  // namespace knap
