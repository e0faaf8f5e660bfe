// The parts of a benchmark page, as HTML.
#pragma once

#include <string>
#include <string_view>

#include "cli/report/figures.h"

namespace knap {

std::string_view page_style();   // CSS
std::string_view page_script();  // shows tooltips; the page is complete without it

// Draws a figure. `index` makes the ids inside its picture unique on the page.
std::string figure_part(const Figure& figure, std::size_t index);

std::string header_part(const ReportSet& set);
// The best series of every file, in large numbers.
std::string highlights_part(const ReportSet& set);
std::string summary_part(const ReportSet& set);  // a row per series
std::string paper_part(const ReportSet& set);    // the paper's values beside ours
std::string rows_part(const ReportSet& set);
// What strategies achieved with several sessions at once; empty when no file has that.
std::string loads_part(const ReportSet& set);
// Whether peers wrote libllama's plain text, and ours; empty when none was compared.
std::string peer_texts_part(const ReportSet& set);
// Model, host, settings and skipped prompts of every file, and the command to run it again.
std::string provenance_part(const ReportSet& set);

// "1.31×", "1.31× <span>1.22 to 1.41</span>".
std::string speedup_cell(const BenchSpeedup& speedup);
// "-" for nullopt.
std::string number_cell(const std::optional<double>& number, int n_decimals);
std::string percent_cell(const std::optional<double>& share);
std::string series_cell(const Series& series);  // its mark, colour and name

}  // namespace knap
