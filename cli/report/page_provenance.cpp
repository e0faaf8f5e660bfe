// Where the numbers come from: the head of the page, the best series of each file, and how each
// file was measured.
#include <algorithm>

#include "base/text.h"
#include "cli/report/html.h"
#include "cli/report/page_parts.h"
#include "cli/report/report.h"
#include "cli/report/rerun.h"
#include "tools/measure/report/bench_setup_json.h"
#include "tools/measure/report/bench_title.h"

namespace knap {
namespace {

using nlohmann::json;

std::string badge(const std::string& text) {
    return concat(" <span class=\"badge\">", html_text(text), "</span>");
}

bool has_projections(const ReportFile& file) {
    return std::ranges::any_of(file.bench.rows, &BenchRow::is_projection);
}

std::string badges(const ReportFile& file) {
    return concat(file.bench.is_complete ? "" : badge("interrupted: not every row was measured"),
                  has_projections(file) ? badge("includes projections") : "");
}

// The value of a setting as text; empty when it needs no line.
std::string setting_text(const json& value) {
    if (value.is_array()) {
        return join(value, ", ", setting_text);
    }
    if (value.is_string()) {
        return value.get<std::string>();
    }
    return value.is_null() ? "" : value.dump();
}

// "n_parameters" as "parameters", "top_k" as "top k".
std::string setting_name(std::string name) {
    name = name.starts_with("n_") ? name.substr(2) : name;
    std::ranges::replace(name, '_', ' ');
    return name;
}

bool is_bytes(const std::string& name) {
    return name.ends_with("_bytes");
}

// In alphabetical order.
std::string definitions(const json& object) {
    std::string list;
    for (const auto& [name, value] : object.items()) {
        const std::string text = is_bytes(name) && value.is_number()
                                     ? format_bytes(value.get<std::int64_t>())
                                     : setting_text(value);
        if (!text.empty()) {
            list += concat("<dt>", html_text(setting_name(name)), "</dt><dd>", html_text(text),
                           "</dd>\n");
        }
    }
    return concat("<dl>\n", list, "</dl>\n");
}

std::string skipped_list(const ReportFile& file) {
    if (file.bench.skipped.empty()) {
        return "";
    }
    std::vector<std::vector<std::string>> rows;
    for (const SkippedPrompt& skip : file.bench.skipped) {
        rows.push_back({html_text(skip.where), html_text(skip.why)});
    }
    return concat("<h3>Skipped</h3>\n", html_table({{"where"}, {"why"}}, rows));
}

std::string provenance_card(const ReportFile& file) {
    const BenchReport& bench = file.bench;
    const std::string memory =
        bench.memory_gb_per_second
            ? concat("; memory bandwidth ", format_fixed(*bench.memory_gb_per_second, 1), " GB/s")
            : "";
    return concat("<div class=\"card\">\n<h3>", html_text(file.name), badges(file),
                  "</h3>\n<p>knap ", html_text(bench.version), " on ", html_text(bench.device),
                  memory, "</p>\n<h3>Model</h3>\n", definitions(to_json(bench.model)),
                  "<h3>Host</h3>\n", definitions(to_json(bench.host)), "<h3>Settings</h3>\n",
                  definitions(to_json(bench.settings)), skipped_list(file),
                  "<h3>Command to run it again</h3>\n<pre><code>", html_text(rerun_command(file)),
                  "</code></pre>\n</div>\n");
}

// The fastest series of a file. Returns nullptr when it has only plain decoding.
const Series* best_of(const ReportSet& set, std::size_t file) {
    const Series* best = nullptr;
    double best_speedup = 0;
    for (const Series& series : set.series) {
        const double speedup = mean_speedup(series.rows).mean;
        if (series.file == file && !is_plain(series) && speedup > best_speedup) {
            best = &series;
            best_speedup = speedup;
        }
    }
    return best;
}

std::string highlight(const std::string& number, const char* unit) {
    return concat("<div><b>", number, "</b>", unit, "</div>\n");
}

std::string tile_of(const ReportSet& set, std::size_t file) {
    const Series* best = best_of(set, file);
    if (best == nullptr) {
        return "";
    }
    std::string numbers =
        highlight(concat(format_fixed(mean_speedup(best->rows).mean, 2), "×"),
                  "over plain decoding") +
        highlight(format_fixed(mean_tokens_per_second(best->rows), 0), "tokens per second");
    if (const auto rate = acceptance_rate(best->rows)) {
        numbers += highlight(format_percent(*rate), "of drafted tokens accepted");
    }
    return concat("<div class=\"tile\"><h3>", series_cell(*best), "</h3><div class=\"numbers\">\n",
                  numbers, "</div></div>\n");
}

}  // namespace

std::string header_part(const ReportSet& set) {
    std::string header = "<header>\n";
    for (const ReportFile& file : set.files) {
        const BenchReport& bench = file.bench;
        header += concat("<h1>", html_text(model_title(bench.model)), "</h1>\n<p>",
                         html_text(bench.model.types), " · ", html_text(bench.host.cpu), " · ",
                         count_text(bench.rows.size(), "row"), " from ", html_text(file.name),
                         badges(file), "</p>\n");
    }
    return header + "</header>\n";
}

std::string highlights_part(const ReportSet& set) {
    std::string tiles;
    for (std::size_t file = 0; file < set.files.size(); ++file) {
        tiles += tile_of(set, file);
    }
    return concat("<div class=\"tiles\">\n", tiles, "</div>\n");
}

std::string provenance_part(const ReportSet& set) {
    std::string cards = "<div class=\"cards\">\n";
    for (const ReportFile& file : set.files) {
        cards += provenance_card(file);
    }
    return cards + "</div>\n";
}

}  // namespace knap
