// The paper's values beside ours, for the same model shape, data and sampling.
#include <map>

#include "base/text.h"
#include "cli/report/html.h"
#include "cli/report/page_parts.h"
#include "cli/report/paper_values.h"
#include "cli/report/report.h"
#include "tools/make_model/shapes.h"

namespace knap {
namespace {

const ModelShape* shape_of(const BenchModel& model) {
    for (const ModelShape& shape : known_shapes()) {
        if (shape.architecture == model.architecture && shape.n_layers == model.n_layers &&
            shape.n_embd == model.n_embd) {
            return &shape;
        }
    }
    return nullptr;
}

// Returns nullopt for settings that the paper did not use.
std::optional<PaperSampling> sampling_of(const SamplingOptions& ours) {
    if (ours.temperature == 0) {
        return PaperSampling::greedy;
    }
    const bool is_table_2 = ours.temperature == 0.7f && ours.top_k == 50 && ours.top_p == 0.95f;
    return is_table_2 ? std::optional(PaperSampling::sampled) : std::nullopt;
}

std::map<std::string, ReportRows> rows_by_data(const Series& series) {
    std::map<std::string, ReportRows> rows;
    for (const BenchRow* row : series.rows) {
        rows[row->data].push_back(row);
    }
    return rows;
}

using Cells = std::vector<std::string>;

void add_comparisons(std::vector<Cells>& rows, const ReportFile& file, const Series& series) {
    const ModelShape* shape = shape_of(file.bench.model);
    const auto sampling = sampling_of(file.bench.settings.sampling);
    const std::string_view method = paper_method(series.strategy);
    if (shape == nullptr || !sampling || method.empty()) {
        return;
    }
    for (const auto& [data, ours] : rows_by_data(series)) {
        if (const auto paper = paper_value(shape->name, data, method, *sampling)) {
            rows.push_back({std::string(shape->name), html_text(data), series_cell(series),
                            speedup_cell(mean_speedup(ours)), percent_cell(acceptance_rate(ours)),
                            std::string(method), concat(format_fixed(paper->speedup, 2), "×"),
                            format_percent(paper->acceptance)});
        }
    }
}

}  // namespace

std::string paper_part(const ReportSet& set) {
    std::vector<Cells> rows;
    for (const Series& series : set.series) {
        add_comparisons(rows, set.files[series.file], series);
    }
    if (rows.empty()) {
        return "<p>None of the paper's values match: it measured Llama 3.1 and 3.2 on GovReport, "
               "PG19 and BookSum, and Qwen3 on AIME and MMLU-Pro, on GPUs.</p>\n";
    }
    return concat(
        "<p>Model shape, data and sampling are the same; the paper used another machine and cut "
        "the data differently (KnapSpec, Tables 1 and 2).</p>\n",
        html_table({{"shape"},
                    {"data"},
                    {"ours"},
                    {"speedup, 95 % interval", true},
                    {"accepted", true},
                    {"paper"},
                    {"speedup", true},
                    {"accepted", true}},
                   rows));
}

}  // namespace knap
