#include "cli/report/file.h"

#include "base/error.h"
#include "tools/measure/report/bench_file.h"

namespace knap {

ReportFile read_report_file(const std::filesystem::path& path) {
    ReportFile file{.name = path.filename().string(), .bench = load_report(path)};
    if (file.bench.rows.empty()) {
        fail(path.string(), ": expected at least one of `rows`, found none");
    }
    return file;
}

}  // namespace knap
