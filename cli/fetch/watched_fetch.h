// Fetches a model with a progress bar. Ctrl-C keeps what was fetched.
#pragma once

#include <filesystem>

#include "cli/environment.h"
#include "cli/flags/flags.h"

namespace knap {

// Throws knap::Error, UsageError for a bad variable of the environment, and InterruptedError on a
// signal.
std::filesystem::path watched_fetch(const HubSettings& settings, const Environment& environment);

}  // namespace knap
