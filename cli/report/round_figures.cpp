// Figures of rounds: acceptance by position, where the time goes, and predictions.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/quantile.h"
#include "base/text.h"
#include "cli/report/figures.h"
#include "cli/report/report.h"
#include "tools/measure/statistics.h"

namespace knap {
namespace {

// Acceptance by position: the mean over rows, weighted by their rounds.
std::vector<double> acceptance_curve(const ReportRows& rows) {
    std::vector<double> sums;
    std::vector<double> weights;
    for (const BenchRow* row : rows) {
        const double weight = row->rounds;
        const std::size_t n = row->acceptance_by_position.size();
        sums.resize(std::max(sums.size(), n));
        weights.resize(std::max(weights.size(), n));
        for (std::size_t i = 0; i < n; ++i) {
            sums[i] += weight * row->acceptance_by_position[i];
            weights[i] += weight;
        }
    }
    std::vector<double> curve;
    for (std::size_t i = 0; i < sums.size() && weights[i] > 0; ++i) {
        curve.push_back(sums[i] / weights[i]);
    }
    return curve;
}

void plot_acceptance(PlotScript& script, const Series& series, const std::vector<double>& curve) {
    std::vector<std::vector<double>> line;
    std::vector<TippedPoint> points;
    for (std::size_t i = 0; i < curve.size(); ++i) {
        const auto position = static_cast<double>(i + 1);
        line.push_back({position, 100 * curve[i]});
        points.push_back(
            {position, 100 * curve[i],
             concat(series.label, ", position ", i + 1, ": ", format_percent(curve[i]))});
    }
    script.add_plot(concat(script.add_data(line), " with lines linewidth 2 linecolor rgb '",
                           series.color, "'"));
    script.add_points(points, look_of(series));
}

struct Part {
    const char* name;
    const char* color;
    double TokenTime::*ms;
};
constexpr std::array<Part, 4> kParts{{{"draft", "#e0a02a", &TokenTime::draft},
                                      {"verify", "#2f7fd1", &TokenTime::verify},
                                      {"search", "#a463c9", &TokenTime::search},
                                      {"other", "#8b929c", &TokenTime::other}}};

struct TimeBar {
    const Series* series;
    TokenTime time;
};

std::vector<TimeBar> time_bars(const ReportSet& set) {
    std::vector<TimeBar> bars;
    for (const Series& series : set.series) {
        bars.push_back({&series, time_per_token(series.rows)});
    }
    return bars;
}

constexpr double kHalfBar = 0.32;

// Plots one part of all bars, starting where the part before it ends.
void plot_part(PlotScript& script, const std::vector<TimeBar>& bars, std::size_t part) {
    std::vector<std::vector<double>> boxes;
    for (std::size_t i = 0; i < bars.size(); ++i) {
        double begin = 0;
        for (std::size_t before = 0; before < part; ++before) {
            begin += bars[i].time.*kParts[before].ms;
        }
        const double end = begin + bars[i].time.*kParts[part].ms;
        const auto y = static_cast<double>(i);
        boxes.push_back({(begin + end) / 2, y, begin, end, y - kHalfBar, y + kHalfBar});
    }
    script.add_plot(concat(script.add_data(boxes),
                           " with boxxyerror fillstyle solid 1 noborder "
                           "linecolor rgb '",
                           kParts[part].color, "'"));
}

std::string time_tip(const TimeBar& bar) {
    std::string tip =
        concat(bar.series->label, ": ", format_fixed(bar.time.total, 2), " ms per token;");
    for (const Part& part : kParts) {
        tip += concat(" ", part.name, " ", format_fixed(bar.time.*part.ms, 2));
    }
    return concat(tip, "; plain ", format_fixed(bar.time.plain, 2));
}

// Marks the time of plain decoding on each bar, and adds points with tooltips.
void plot_time_marks(PlotScript& script, const std::vector<TimeBar>& bars) {
    std::vector<std::vector<double>> plain;
    for (std::size_t i = 0; i < bars.size(); ++i) {
        plain.push_back({bars[i].time.plain, static_cast<double>(i) - 0.45, 0, 0.9});
    }
    script.add_plot(
        concat(script.add_data(plain), " with vectors nohead linetype black linewidth 2"));
    for (std::size_t i = 0; i < bars.size(); ++i) {
        script.add_points({{bars[i].time.total, static_cast<double>(i), time_tip(bars[i])}},
                          look_of(*bars[i].series));
    }
}

struct Pair {
    double predicted;
    double measured;
};

std::vector<Pair> plot_predictions(PlotScript& script, const Series& series) {
    std::vector<Pair> pairs;
    std::vector<TippedPoint> points;
    for (const BenchRow* row : series.rows) {
        if (row->predicted.value_or(0) > 0 && row->measured.value_or(0) > 0) {
            pairs.push_back({*row->predicted, *row->measured});
            points.push_back({*row->predicted, *row->measured,
                              concat(series.label, ", ", row->task, " ", row->id, ": predicted ",
                                     format_fixed(*row->predicted, 2), "×, measured ",
                                     format_fixed(*row->measured, 2), "×")});
        }
    }
    script.add_points(points, look_of(series));
    return pairs;
}

// Both axes have the same range, so that correct predictions lie on the diagonal.
void set_prediction_axes(PlotScript& script, const std::vector<Pair>& pairs) {
    AxisRange range;
    for (const Pair& pair : pairs) {
        range.add(pair.predicted);
        range.add(pair.measured);
    }
    const double margin = std::max(0.02, 0.05 * (range.most - range.least));
    const std::string span = concat("[", range.least - margin, ":", range.most + margin, "]");
    script.set(concat("set xrange ", span, "\nset yrange ", span));
}

std::string prediction_caption(const std::vector<Pair>& pairs) {
    std::vector<double> predicted;
    std::vector<double> measured;
    std::vector<double> errors;
    for (const Pair& pair : pairs) {
        predicted.push_back(pair.predicted);
        measured.push_back(pair.measured);
        errors.push_back(std::abs(pair.predicted / pair.measured - 1));
    }
    std::string caption = concat(
        "Speedup over plain decoding at the last decision on each prompt. "
        "The median error of the predictions is ",
        format_percent(median(errors)));
    const double correlation = pairs.size() > 2 ? pearson(predicted, measured) : NAN;
    return std::isfinite(correlation)
               ? concat(caption, "; the correlation is ", format_fixed(correlation, 2), ".")
               : caption + ".";
}

}  // namespace

Figure acceptance_figure(const ReportSet& set) {
    Figure figure{.title = "Acceptance by position",
                  .caption =
                      "The share of drafted tokens that the whole model accepted, by "
                      "position in the draft."};
    PlotScript script;
    for (const Series& series : set.series) {
        const auto curve = acceptance_curve(series.rows);
        if (!curve.empty()) {
            plot_acceptance(script, series, curve);
            mention(figure, series);
        }
    }
    if (!script.has_plots()) {
        figure.caption = "Nothing to draw: no strategy drafted anything.";
        return figure;
    }
    script.set("set xlabel 'position in the draft'\nset ylabel 'accepted, %'");
    script.set("set xtics 1\nset xrange [0.6:*]\nset yrange [0:104]");
    figure.script = script.text();
    return figure;
}

Figure time_figure(const ReportSet& set) {
    Figure figure{.title = "Where the time goes",
                  .caption =
                      "Milliseconds per generated token. The vertical line is plain "
                      "decoding, measured in turns with the strategy."};
    const std::vector<TimeBar> bars = time_bars(set);
    PlotScript script;
    for (std::size_t part = 0; part < kParts.size(); ++part) {
        plot_part(script, bars, part);
        figure.legend.push_back({"■", kParts[part].color, kParts[part].name});
    }
    plot_time_marks(script, bars);
    for (std::size_t i = 0; i < bars.size(); ++i) {
        script.add_y_tick(bars[i].series->label, static_cast<double>(i));
        figure.has_projection = figure.has_projection || bars[i].series->is_projection;
    }
    script.set(concat("set yrange [", static_cast<double>(bars.size()) - 0.5, ":-0.5]"));
    script.set("set xrange [0:*]\nset xlabel 'ms per token'\nunset grid\nset grid xtics");
    figure.script = script.text();
    figure.height = 70 + 30 * static_cast<int>(bars.size());
    return figure;
}

Figure prediction_figure(const ReportSet& set) {
    Figure figure{.title = "Predicted against measured"};
    PlotScript script;
    script.add_plot(concat("x", kPlainLine));
    std::vector<Pair> all;
    for (const Series& series : set.series) {
        const auto pairs = plot_predictions(script, series);
        if (!pairs.empty()) {
            mention(figure, series);
            all.insert(all.end(), pairs.begin(), pairs.end());
        }
    }
    if (all.empty()) {
        figure.caption = "Nothing to draw: no strategy predicted its speed.";
        return figure;
    }
    figure.caption = prediction_caption(all);
    script.set("set xlabel 'predicted'\nset ylabel 'measured'");
    set_prediction_axes(script, all);
    figure.script = script.text();
    return figure;
}

}  // namespace knap
