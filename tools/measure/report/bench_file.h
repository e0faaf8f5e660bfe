// A benchmark on disk: what `knap bench` writes after every prompt, --resume goes on from and
// `knap report` draws.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/measure/report/bench_report.h"

namespace knap {

// Field names are a promise to scripts: new ones may come, none is renamed. What is not known is
// null, never missing. docs/benchmarks.md says what each means.
nlohmann::ordered_json to_json(const BenchReport& report);

// A whole file, checked: times, speedups and tokens of turns are above 0, and plans fit the model.
// It may have no rows, of an interrupted benchmark. Members that to_json() does not write are left
// alone. Throws knap::Error in one line that begins with the path.
BenchReport load_report(const std::filesystem::path& path);

// What an earlier run of the same benchmark measured.
struct EarlierRows {
    std::vector<BenchRow> rows;
    std::optional<double> memory_gb_per_second;
};

// `report` says what is to be measured; its rows are left alone. Throws where the file is missing
// or damaged, or of another model, machine, version or other settings.
EarlierRows load_rows(const std::filesystem::path& path, const BenchReport& report);

}  // namespace knap
