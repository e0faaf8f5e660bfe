// Benchmarks as one HTML page that holds everything it shows: nothing is loaded when it is opened.
#pragma once

#include <span>
#include <string>

#include "cli/report/file.h"

namespace knap {

// There is at least one file. Throws knap::Error when a figure cannot be drawn.
std::string report_page(std::span<const ReportFile> files);

}  // namespace knap
