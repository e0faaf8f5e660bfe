// Benchmarks as one self-contained HTML page, which loads nothing from the network.
#pragma once

#include <span>
#include <string>

#include "cli/report/file.h"

namespace knap {

// `files` must not be empty. Throws knap::Error when a figure cannot be drawn.
std::string report_page(std::span<const ReportFile> files);

}  // namespace knap
