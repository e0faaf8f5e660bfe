// A results file of `knap bench`, the input of a page.
#pragma once

#include <filesystem>
#include <string>

#include "tools/measure/report/bench_report.h"

namespace knap {

struct ReportFile {
    std::string name;   // as shown on the page
    BenchReport bench;  // has at least one row
};

// Throws knap::Error in one line that begins with the path.
ReportFile read_report_file(const std::filesystem::path& path);

}  // namespace knap
