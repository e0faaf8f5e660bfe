// The tables of a benchmark page: one line per series, and one per row.
#include <algorithm>

#include "base/quantile.h"
#include "base/text.h"
#include "cli/report/html.h"
#include "cli/report/page_parts.h"
#include "cli/report/report.h"
#include "tools/measure/report/bench_table.h"

namespace knap {
namespace {

constexpr const char* kNothing = "-";

// The median over the rows in which the value is known.
template <typename Value>
std::optional<double> median_of(const ReportRows& rows, Value BenchRow::*value) {
    std::vector<double> values;
    for (const BenchRow* row : rows) {
        if (const std::optional<double> known(row->*value); known) {
            values.push_back(*known);
        }
    }
    return values.empty() ? std::nullopt : std::optional(median(values));
}

int n_near_ties(const ReportRows& rows) {
    int sum = 0;
    for (const BenchRow* row : rows) {
        sum += row->near_ties;
    }
    return sum;
}

std::string bytes_cell(const std::optional<double>& n_bytes) {
    return n_bytes && *n_bytes > 0 ? format_bytes(static_cast<std::int64_t>(*n_bytes)) : kNothing;
}

std::string bandwidth_cell(const std::optional<double>& reached, const std::optional<double>& can) {
    if (!reached) {
        return kNothing;
    }
    const std::string speed = concat(format_fixed(*reached, 1), " GB/s");
    return can && *can > 0 ? concat(speed, " <small>", format_percent(*reached / *can), "</small>")
                           : speed;
}

double search_share(const ReportRows& rows) {
    const TokenTime time = time_per_token(rows);
    return time.search / time.total;
}

std::vector<std::string> summary_row(const ReportSet& set, const Series& series) {
    const ReportFile& file = set.files[series.file];
    return {
        series_cell(series),
        concat(series.rows.size()),
        speedup_cell(mean_speedup(series.rows)),
        speedup_cell(mean_speedup(series.rows, &BenchRow::request_speedup)),
        number_cell(mean_tokens_per_second(series.rows), 1),
        percent_cell(acceptance_rate(series.rows)),
        number_cell(median_of(series.rows, &BenchRow::mean_accepted_length), 2),
        percent_cell(search_share(series.rows)),
        bandwidth_cell(median_of(series.rows, &BenchRow::bandwidth_gb_per_second),
                       file.bench.memory_gb_per_second),
        bytes_cell(median_of(series.rows, &BenchRow::peak_memory_bytes)),
        number_cell(median_of(series.rows, &BenchRow::distinct_trigrams), 2),
        concat(n_near_ties(series.rows)),
    };
}

std::vector<std::string> row_cells(const Series& series, const BenchRow& row) {
    return {
        html_text(row.data),
        html_text(row.task),
        html_text(row.id),
        concat(row.n_prompt, row.is_cut ? " <small>cut</small>" : ""),
        series_cell(series),
        speedup_cell(row.speedup),
        speedup_cell(row.request_speedup),
        number_cell(row.tokens_per_second, 1),
        percent_cell(row.acceptance_rate),
        number_cell(row.mean_accepted_length, 2),
        number_cell(row.prefill_ms, 0),
        number_cell(row.predicted, 2),
        number_cell(row.measured, 2),
        concat(row.near_ties),
    };
}

// A table below a heading, and its note; empty without lines. The first `n_texts` columns are
// texts, the others numbers.
std::string table_part(const std::string& heading,
                       const BenchTable& table,
                       std::size_t n_texts,
                       const char* note) {
    if (table.lines.empty()) {
        return "";
    }
    std::vector<HtmlColumn> columns;
    for (std::size_t i = 0; i < table.headings.size(); ++i) {
        columns.push_back({table.headings[i], i >= n_texts});
    }
    std::vector<std::vector<std::string>> rows = table.lines;
    for (std::vector<std::string>& cells : rows) {
        std::ranges::transform(cells, cells.begin(),
                               [](const std::string& cell) { return html_text(cell); });
    }
    return concat("<h3>", heading, "</h3>\n", html_table(columns, rows), "<p>", note, "</p>\n");
}

}  // namespace

std::string speedup_cell(const BenchSpeedup& speedup) {
    const std::string mean = concat("<b>", format_fixed(speedup.mean, 2), "×</b>");
    return speedup.low && speedup.high ? concat(mean, " <small>", format_fixed(*speedup.low, 2),
                                                " to ", format_fixed(*speedup.high, 2), "</small>")
                                       : mean;
}

std::string number_cell(const std::optional<double>& number, int n_decimals) {
    return number ? format_fixed(*number, n_decimals) : kNothing;
}

std::string percent_cell(const std::optional<double>& share) {
    return share ? format_percent(*share) : kNothing;
}

std::string series_cell(const Series& series) {
    return concat("<span class=\"mark\" style=\"color:", series.color, "\">", mark_of(series).glyph,
                  "</span>", html_text(series.label));
}

std::string summary_part(const ReportSet& set) {
    std::vector<std::vector<std::string>> rows;
    for (const Series& series : set.series) {
        rows.push_back(summary_row(set, series));
    }
    return html_table({{"strategy"},
                       {"prompts", true},
                       {"speedup, 95 % interval", true},
                       {"whole request, 95 % interval", true},
                       {"tokens/s", true},
                       {"accepted", true},
                       {"tokens per round", true},
                       {"search", true},
                       {"bandwidth", true},
                       {"peak memory", true},
                       {"distinct trigrams", true},
                       {"near ties", true}},
                      rows);
}

std::string loads_part(const ReportSet& set) {
    std::string part;
    for (const ReportFile& file : set.files) {
        const std::string heading =
            concat(html_text(file.name), ": ", file.bench.settings.parallel, " sessions");
        part += table_part(heading, load_table(file.bench.loads), /*n_texts=*/2, kLoadNote);
    }
    return part;
}

std::string peer_texts_part(const ReportSet& set) {
    std::string part;
    for (const ReportFile& file : set.files) {
        part += table_part(html_text(file.name), peer_text_table(file.bench.rows), /*n_texts=*/1,
                           kPeerTextNote);
    }
    return part;
}

std::string rows_part(const ReportSet& set) {
    std::vector<std::vector<std::string>> rows;
    for (const Series& series : set.series) {
        for (const BenchRow* row : series.rows) {
            rows.push_back(row_cells(series, *row));
        }
    }
    return html_table({{"data"},
                       {"task"},
                       {"prompt"},
                       {"tokens", true},
                       {"strategy"},
                       {"speedup, 95 % interval", true},
                       {"whole request, 95 % interval", true},
                       {"tokens/s", true},
                       {"accepted", true},
                       {"tokens per round", true},
                       {"prefill, ms", true},
                       {"predicted", true},
                       {"measured", true},
                       {"near ties", true}},
                      rows);
}

}  // namespace knap
