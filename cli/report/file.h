// A file of `knap bench` as a page draws it.
#pragma once

#include <filesystem>
#include <string>

#include "tools/measure/report/bench_report.h"

namespace knap {

struct ReportFile {
    std::string name;   // the file's own
    BenchReport bench;  // with one row at least
};

// Throws knap::Error in one line that begins with the path.
ReportFile read_report_file(const std::filesystem::path& path);

}  // namespace knap
