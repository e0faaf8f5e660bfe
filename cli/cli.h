// The whole command line: parses, calls the command, and turns every failure into one line and an
// exit code.
#pragma once

#include <string>
#include <vector>

#include "cli/environment.h"

namespace knap {

// `words` without the program's name. Returns the exit code: 0 done, 1 failed, 2 wrong usage, 130
// interrupted.
int run_cli(const std::vector<std::string>& words, const Environment& environment);

}  // namespace knap
