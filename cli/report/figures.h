// The figures of a page of benchmarks. Each is a script for gnuplot with a legend beside it, or,
// where the files hold nothing that it could show, a sentence that says so.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/plot.h"
#include "cli/plot_script.h"
#include "cli/report/series.h"

namespace knap {

struct LegendEntry {
    std::string glyph;
    std::string color;
    std::string text;
};

struct Figure {
    std::string title;
    std::string caption;
    std::string script;  // empty: nothing to draw, and the caption says why
    int height = 320;
    std::vector<LegendEntry> legend{};
    bool has_projection = false;
};

// What is compared. The files outlive it.
struct ReportSet {
    explicit ReportSet(std::span<const ReportFile> report_files)
        : files(report_files), series(series_of(report_files)) {}

    std::span<const ReportFile> files;
    std::vector<Series> series;
};

// Speed over plain decoding.
Figure task_figure(const ReportSet& set);
// Of prompts by their length, and of synthetic contexts by their depth: each where there are any.
std::vector<Figure> context_figures(const ReportSet& set);

// What rounds came to.
Figure acceptance_figure(const ReportSet& set);
Figure time_figure(const ReportSet& set);
Figure prediction_figure(const ReportSet& set);

// Which modules were drafted with, by layer and by length of the context: one for each series that
// drafted with parts of the model.
std::vector<Figure> level_figures(const ReportSet& set);

// What passes cost, from the saved profile.
std::vector<Figure> cost_figures(const ReportSet& set);

// Pieces that figures share.
// How the line of plain decoding is drawn.
inline constexpr const char* kPlainLine = " with lines linetype black dashtype 2";
std::string count_text(std::size_t n, const std::string& what);  // "1 prompt", "2 prompts"
PointLook look_of(const Series& series);
// Adds the series to a figure's legend, and says so where it is a projection.
void mention(Figure& figure, const Series& series);
// Where a context length lies on an axis on which doublings are equally far apart. The shortest
// lengths share a place.
double context_place(double n_context);
// What an axis has to span.
struct AxisRange {
    double least = 1e9;
    double most = 0;

    void add(double value);
};
void set_context_axis(PlotScript& script, const AxisRange& range);
std::string context_name(double n_context);  // "512", "2K"

}  // namespace knap
