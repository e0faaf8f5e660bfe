// A benchmark on disk: what `knap bench` writes after every prompt and --resume goes on from.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "measure/bench_report.h"

namespace knap {

// Field names are a promise to scripts: new ones may come, none is renamed. What is not known is
// null, never missing. docs/benchmarks.md says what each means.
nlohmann::ordered_json to_json(const BenchReport& report);
nlohmann::ordered_json to_json(const BenchSettings& settings);

// What an earlier run of the same benchmark measured.
struct EarlierRows {
    std::vector<BenchRow> rows;
    std::optional<double> memory_gb_per_second;
};

// `report` says what is to be measured; its rows are left alone. Throws where the file is missing
// or damaged, or of another model, machine, version or other settings.
EarlierRows load_rows(const std::filesystem::path& path, const BenchReport& report);

}  // namespace knap
