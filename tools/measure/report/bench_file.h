// A benchmark on disk: `knap bench` writes it after every prompt, --resume continues it and
// `knap report` draws it.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/measure/report/bench_report.h"

namespace knap {

// Field names are stable for scripts: fields may be added, none is renamed. Unknown values are
// null, never missing. docs/benchmarks.md describes the fields.
nlohmann::ordered_json to_json(const BenchReport& report);

// Reads and checks a file: times, speedups and token counts of turns are above 0, and plans fit the
// model. An interrupted benchmark may have no rows. Ignores members that to_json() does not write.
// Throws knap::Error with a one-line message that begins with the path.
BenchReport load_report(const std::filesystem::path& path);

// The measurements of an earlier run of the same benchmark.
struct EarlierRows {
    std::vector<BenchRow> rows;
    std::optional<double> memory_gb_per_second;
};

// `report` describes the benchmark to resume; its rows are ignored. Throws when the file is missing
// or damaged, or comes from another model, machine, version or other settings.
EarlierRows load_rows(const std::filesystem::path& path, const BenchReport& report);

}  // namespace knap
