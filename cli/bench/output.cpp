#include "cli/bench/output.h"

#include "base/partial_file.h"
#include "cli/exit_code.h"
#include "runtime/files/json_file.h"
#include "tools/measure/report/bench_csv.h"
#include "tools/measure/report/bench_file.h"
#include "tools/measure/report/bench_markdown.h"

namespace knap {

std::filesystem::path parse_bench_output(const std::string& name, const std::string& text) {
    const std::filesystem::path path = text;
    if (!is_json_output(path) && path.extension() != ".csv" && path.extension() != ".md") {
        fail_usage(name, ": expected a file that ends in .json, .csv or .md, found '", text, "'");
    }
    return path;
}

bool is_json_output(const std::filesystem::path& path) {
    return path.extension() == ".json";
}

void write_outputs(const std::vector<std::filesystem::path>& paths, const BenchReport& report) {
    for (const std::filesystem::path& path : paths) {
        if (is_json_output(path)) {
            write_json_file(path, to_json(report));
        } else {
            write_whole_file(path,
                             path.extension() == ".csv" ? to_csv(report) : to_markdown(report));
        }
    }
}

}  // namespace knap
