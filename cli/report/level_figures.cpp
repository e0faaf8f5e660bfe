// Heat maps of plans: how much of each module drafts ran, by layer and context length.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "cli/report/figures.h"
#include "cli/report/report.h"
#include "forward/plan_text.h"

namespace knap {
namespace {

constexpr int kRgb = 0x2f7fd1;
constexpr const char* kColor = "#2f7fd1";
constexpr const char* kWindowColor = "#2f7fd166";  // at kWindowStrength
constexpr std::string_view kOutline = "#a08b929c";

// The shade of a level. All windows have the same shade: scaled by their share of a long context,
// they would look skipped. So do MLPs with fewer experts.
constexpr double kWindowStrength = 0.4;
constexpr double kExpertsStrength = 0.6;
double strength(const Level& level) {
    switch (level.kind) {
        case Level::Kind::full:
            return 1;
        case Level::Kind::skip:
            return 0;
        case Level::Kind::window:
            return kWindowStrength;
        case Level::Kind::experts:
            return kExpertsStrength;
    }
    return 1;
}

// A context length: all decisions near it, weighted by the tokens they were in force for.
struct LengthRow {
    double n_tokens = 0;
    std::vector<double> attention;  // [n_layers] strengths, summed over tokens
    std::vector<double> mlp;
};

void add_level(LengthRow& row, const ModulePlan& plan, int n_tokens) {
    const auto n_layers = static_cast<std::size_t>(plan.n_layers());
    row.attention.resize(n_layers);
    row.mlp.resize(n_layers);
    row.n_tokens += n_tokens;
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        const auto i = static_cast<std::size_t>(layer);
        row.attention[i] += n_tokens * strength(plan.level(layer, Module::attention));
        row.mlp[i] += n_tokens * strength(plan.level(layer, Module::mlp));
    }
}

// By the power of two nearest to a decision's context, the longest first.
using LengthRows = std::map<double, LengthRow, std::greater<>>;

struct LevelPattern {
    LengthRows lengths;
    double n_tokens = 0;      // generated while a plan was in force
    double n_all_tokens = 0;  // all generated tokens
};

LevelPattern pattern_of(const Series& series, int n_layers) {
    LevelPattern pattern;
    for (const BenchRow* row : series.rows) {
        pattern.n_all_tokens += row->turns.back().n_generated;
        for (const BenchLevel& level : row->levels) {
            if (level.n_tokens > 0) {
                pattern.n_tokens += level.n_tokens;
                add_level(pattern.lengths[std::round(context_place(level.n_context))],
                          parse_plan(level.plan, n_layers), level.n_tokens);
            }
        }
    }
    return pattern;
}

// A cell as x, y and colour. The less of a module runs, the more transparent its cell.
std::vector<double> cell(std::size_t layer, double y, double shade) {
    const double transparency = std::round(255 * (1 - shade));
    return {static_cast<double>(layer), y, transparency * double(1 << 24) + kRgb};
}

struct HeatMap {
    std::vector<std::vector<double>> cells;
    double bottom = 0;  // y of the next row
};

void add_module(HeatMap& map,
                PlotScript& script,
                const LengthRows& lengths,
                const char* name,
                std::vector<double> LengthRow::*module) {
    for (const auto& [place, row] : lengths) {
        const auto& strengths = row.*module;
        for (std::size_t layer = 0; layer < strengths.size(); ++layer) {
            map.cells.push_back(cell(layer, map.bottom, strengths[layer] / row.n_tokens));
        }
        script.add_y_tick(concat(name, " ", context_name(std::exp2(place))), map.bottom);
        map.bottom += 1;
    }
}

// Plots the cells, each with an outline, which is all that is visible of a skipped module.
void plot_cells(PlotScript& script, const HeatMap& map) {
    const std::string cells = script.add_data(map.cells);
    script.add_plot(concat(cells,
                           " using 1:2:(0.47):(0.44):3 with boxxyerror fillstyle solid 1 noborder "
                           "linecolor rgb variable"));
    script.add_plot(concat(cells,
                           " using 1:2:(0.47):(0.44) with boxxyerror fillstyle empty linewidth 0.5 "
                           "linecolor rgb '",
                           kOutline, "'"));
}

Figure level_figure(const Series& series, const LevelPattern& pattern, int n_layers) {
    Figure figure{.title = concat("Levels by layer and length: ", series.label),
                  .caption = concat("The modules that drafts ran, by context length; intermediate "
                                    "shades are mixtures of plans. Plans were in force for ",
                                    format_percent(pattern.n_tokens / pattern.n_all_tokens),
                                    " of the tokens.")};
    PlotScript script;
    HeatMap map;
    add_module(map, script, pattern.lengths, "attention", &LengthRow::attention);
    map.bottom += 0.5;
    add_module(map, script, pattern.lengths, "MLP", &LengthRow::mlp);
    plot_cells(script, map);
    script.set(concat("set xrange [-0.7:", n_layers - 0.3, "]"));
    script.set(concat("set yrange [", map.bottom - 0.4, ":-0.6]"));
    script.set(concat("set xtics ", (n_layers + 7) / 8));
    script.set("set xlabel 'layer'\nunset grid\nset border 0");
    figure.script = script.text();
    figure.height = 84 + static_cast<int>(26 * map.bottom);
    figure.legend = {
        {"□", "#8b929c", "skipped"}, {"■", kWindowColor, "windowed"}, {"■", kColor, "whole"}};
    figure.has_projection = series.is_projection;
    return figure;
}

}  // namespace

std::vector<Figure> level_figures(const ReportSet& set) {
    std::vector<Figure> figures;
    for (const Series& series : set.series) {
        const int n_layers = set.files[series.file].bench.model.n_layers;
        const LevelPattern pattern = pattern_of(series, n_layers);
        if (!pattern.lengths.empty()) {
            figures.push_back(level_figure(series, pattern, n_layers));
        }
    }
    if (figures.empty()) {
        figures.push_back({.title = "Levels by layer and length",
                           .caption = "Nothing to draw: no strategy drafted with parts of the "
                                      "model."});
    }
    return figures;
}

}  // namespace knap
