// The figures of a benchmark page. Each is a gnuplot script with a legend, or, when the files hold
// no data for it, only a caption that gives the reason.
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
    std::string script;  // empty: nothing to draw, and the caption gives the reason
    int height = 320;
    std::vector<LegendEntry> legend{};
    bool has_projection = false;
};

// The files to compare, and their series. The files must outlive it.
struct ReportSet {
    explicit ReportSet(std::span<const ReportFile> report_files)
        : files(report_files), series(series_of(report_files)) {}

    std::span<const ReportFile> files;
    std::vector<Series> series;
};

// Speed relative to plain decoding, by task.
Figure task_figure(const ReportSet& set);
// Speed by prompt length, and by the depth of synthetic contexts. Leaves out figures without data.
std::vector<Figure> context_figures(const ReportSet& set);

// Results of the rounds: acceptance, time and predictions.
Figure acceptance_figure(const ReportSet& set);
Figure time_figure(const ReportSet& set);
Figure prediction_figure(const ReportSet& set);

// The modules that drafts ran, by layer and context length: one figure for each series that drafted
// with parts of the model.
std::vector<Figure> level_figures(const ReportSet& set);

// The costs of passes, from the saved profile.
std::vector<Figure> cost_figures(const ReportSet& set);

// Shared by the figures.
// The style of the line for plain decoding.
inline constexpr const char* kPlainLine = " with lines linetype black dashtype 2";
std::string count_text(std::size_t n, const std::string& what);  // "1 prompt", "2 prompts"
PointLook look_of(const Series& series);
// Adds the series to a figure's legend, and marks the figure if the series is a projection.
void mention(Figure& figure, const Series& series);
// The position of a context length on a log2 axis. The shortest lengths share a position.
double context_place(double n_context);
// The range of an axis.
struct AxisRange {
    double least = 1e9;
    double most = 0;

    void add(double value);
};
void set_context_axis(PlotScript& script, const AxisRange& range);
std::string context_name(double n_context);  // "512", "2K"

}  // namespace knap
