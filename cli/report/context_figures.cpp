// Figures of speed by context length: relative to plain decoding, and in tokens per second.
#include <cmath>
#include <map>

#include "base/text.h"
#include "cli/report/figures.h"
#include "cli/report/report.h"

namespace knap {
namespace {

enum class Quantity { speedup, tokens_per_second };

// A point of a series: rows of similar length.
struct LengthBin {
    double place = 0;  // mean
    double value = 0;
    std::size_t n_rows = 0;
};

// Groups prompts by the nearest power of two, and synthetic contexts by their exact depth.
std::map<double, ReportRows> rows_by_length(const Series& series, bool wants_synthetic) {
    std::map<double, ReportRows> bins;
    for (const BenchRow* row : series.rows) {
        if (row->is_synthetic() == wants_synthetic) {
            const double place = context_place(row->n_prompt);
            bins[wants_synthetic ? place : std::round(place)].push_back(row);
        }
    }
    return bins;
}

double value_of(const ReportRows& rows, Quantity quantity) {
    return quantity == Quantity::speedup ? mean_speedup(rows).mean : mean_tokens_per_second(rows);
}

double mean_place(const ReportRows& rows) {
    double sum = 0;
    for (const BenchRow* row : rows) {
        sum += context_place(row->n_prompt);
    }
    return sum / static_cast<double>(rows.size());
}

std::vector<LengthBin> bins_of(const Series& series, bool wants_synthetic, Quantity quantity) {
    std::vector<LengthBin> bins;
    for (const auto& [_, rows] : rows_by_length(series, wants_synthetic)) {
        bins.push_back({mean_place(rows), value_of(rows, quantity), rows.size()});
    }
    return bins;
}

void plot_bins(PlotScript& script,
               const Series& series,
               const std::vector<LengthBin>& bins,
               const char* unit) {
    std::vector<std::vector<double>> line;
    std::vector<TippedPoint> points;
    for (const LengthBin& bin : bins) {
        line.push_back({bin.place, bin.value});
        points.push_back(
            {bin.place, bin.value,
             concat(series.label, " at ", context_name(std::exp2(bin.place)), ": ",
                    format_fixed(bin.value, 2), unit, ", ", count_text(bin.n_rows, "prompt"))});
    }
    script.add_plot(concat(script.add_data(line), " with lines linewidth 2 linecolor rgb '",
                           series.color, "'", series.is_projection ? " dashtype 2" : ""));
    script.add_points(points, look_of(series));
}

struct ContextFigure {
    const char* title;
    const char* caption;
    Quantity quantity;
    bool is_synthetic;
};

constexpr ContextFigure kContextFigures[] = {
    {"Speedup against prompt length", "Prompts are grouped by length, to the nearest power of two.",
     Quantity::speedup, false},
    {"Tokens per second against prompt length", "Decoding only, without the prefill.",
     Quantity::tokens_per_second, false},
    {"Speedup against context depth", "Synthetic contexts (-d).", Quantity::speedup, true},
    {"Tokens per second against context depth", "Synthetic contexts (-d).",
     Quantity::tokens_per_second, true},
};

Figure context_figure(const ReportSet& set, const ContextFigure& wanted) {
    Figure figure{.title = wanted.title, .caption = wanted.caption};
    const bool is_speedup = wanted.quantity == Quantity::speedup;
    PlotScript script;
    if (is_speedup) {
        script.add_plot(concat("1", kPlainLine));
    }
    AxisRange range;
    for (const Series& series : set.series) {
        const auto bins = bins_of(series, wanted.is_synthetic, wanted.quantity);
        if (bins.empty()) {
            continue;
        }
        range.add(std::exp2(bins.front().place));
        range.add(std::exp2(bins.back().place));
        plot_bins(script, series, bins, is_speedup ? "×" : " tokens/s");
        mention(figure, series);
    }
    if (figure.legend.empty()) {
        return figure;
    }
    set_context_axis(script, range);
    script.set(is_speedup ? "set ylabel 'speedup over plain decoding'" : "set ylabel 'tokens/s'");
    if (!is_speedup) {
        script.set("set yrange [0:*]");
    }
    figure.script = script.text();
    return figure;
}

}  // namespace

std::vector<Figure> context_figures(const ReportSet& set) {
    std::vector<Figure> figures;
    for (const ContextFigure& wanted : kContextFigures) {
        Figure figure = context_figure(set, wanted);
        if (!figure.script.empty()) {
            figures.push_back(std::move(figure));
        }
    }
    return figures;
}

}  // namespace knap
