#include "fuzz/material.h"
#include "fuzz/targets.h"
#include "support/bench_example.h"
#include "tools/measure/report/bench_csv.h"
#include "tools/measure/report/bench_file.h"
#include "tools/measure/report/bench_markdown.h"
#include "tools/measure/report/bench_summary.h"

namespace knap::fuzz::bench_file_target_parts {
namespace {

void run(std::string_view input) {
    const InputFile file(input);
    is_accepted([&] {
        const BenchReport report = load_report(file.path());
        to_csv(report);
        to_markdown(report);
        summarise(report.rows);
        const std::string written =
            to_json(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        const InputFile again(written);
        const BenchReport read = load_report(again.path());
        expect(read.rows.size() == report.rows.size(), "a report can be read as it is written");
        is_accepted([&] { load_rows(again.path(), report); });
    });
}

std::vector<std::string> seeds() {
    BenchReport report = test::example_report();
    std::vector<std::string> all{to_json(report).dump()};
    report.rows.resize(1);
    all.push_back(to_json(report).dump());
    report.rows.clear();
    report.costs.clear();
    all.push_back(to_json(report).dump(1));
    for (const std::string& text : deep_and_long()) {
        all.push_back(text);
        all.push_back("{\"format\":" + text);
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::bench_file_target_parts

knap::fuzz::Target knap::fuzz::bench_file_target() {
    using namespace bench_file_target_parts;
    return {.name = "bench_file",
            .run = run,
            .seeds = seeds,
            .max_bytes = 16384,
            .word_sources = {"tools/measure/report"}};
}
