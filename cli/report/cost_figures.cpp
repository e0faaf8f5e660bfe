// Figures of the costs of passes in the saved profile.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "cli/report/figures.h"
#include "cli/report/report.h"
#include "forward/plan_text.h"

namespace knap {
namespace {

constexpr std::string_view kColors[] = {"#e4572e", "#2f7fd1", "#2a9d6f", "#a463c9",
                                        "#e0a02a", "#15a3b5", "#d6508f", "#8f7a3d"};

// A curve: milliseconds over context length or number of rows.
struct CostCurve {
    std::string name;
    std::map<int, double> ms;
};

CostCurve& curve_named(std::vector<CostCurve>& curves, const std::string& name) {
    const auto found = std::ranges::find(curves, name, &CostCurve::name);
    return found != curves.end() ? *found : curves.emplace_back(CostCurve{name, {}});
}

ModulePlan plan_of(const BenchCost& cost, const ReportFile& file) {
    return parse_plan(cost.plan, file.bench.model.n_layers);
}

std::string plan_name(const ModulePlan& plan) {
    return plan.is_full() ? "whole model" : to_string(plan);
}

// `name`, with the file's name if there are several files: "whole model · out.json".
std::string curve_name(const ReportSet& set, const ReportFile& file, const std::string& name) {
    return set.files.size() > 1 ? concat(name, " · ", file.name) : name;
}

// Passes of one row, by plan.
std::vector<CostCurve> step_curves(const ReportSet& set) {
    std::vector<CostCurve> curves;
    for (const ReportFile& file : set.files) {
        for (const BenchCost& cost : file.bench.costs) {
            if (cost.n_rows == 1 && cost.has_head) {
                const std::string name = curve_name(set, file, plan_name(plan_of(cost, file)));
                curve_named(curves, name).ms[cost.n_context] = cost.ms;
            }
        }
    }
    return curves;
}

// Passes of the whole model over several rows, by context.
std::vector<CostCurve> verify_curves(const ReportSet& set) {
    std::vector<CostCurve> curves;
    for (const ReportFile& file : set.files) {
        for (const BenchCost& cost : file.bench.costs) {
            if (plan_of(cost, file).is_full() && cost.has_head) {
                const std::string at = concat("at ", context_name(cost.n_context));
                curve_named(curves, curve_name(set, file, at)).ms[cost.n_rows] = cost.ms;
            }
        }
    }
    std::erase_if(curves, [](const CostCurve& curve) { return curve.ms.size() < 2; });
    return curves;
}

void plot_curves(Figure& figure,
                 PlotScript& script,
                 const std::vector<CostCurve>& curves,
                 double (*place)(double)) {
    for (std::size_t i = 0; i < curves.size(); ++i) {
        const std::string color(kColors[i % std::size(kColors)]);
        std::vector<std::vector<double>> line;
        std::vector<TippedPoint> points;
        for (const auto& [at, ms] : curves[i].ms) {
            line.push_back({place(at), ms});
            points.push_back({place(at), ms,
                              concat(curves[i].name, ", ", at, ": ", format_fixed(ms, 2), " ms")});
        }
        script.add_plot(
            concat(script.add_data(line), " with lines linewidth 2 linecolor rgb '", color, "'"));
        script.add_points(points, {.color = color, .size = 0.6});
        figure.legend.push_back({"●", color, curves[i].name});
    }
}

Figure step_figure(const ReportSet& set) {
    Figure figure{.title = "Cost of a step by plan",
                  .caption =
                      "Time of a pass of one row, by context length: the whole model and the "
                      "measured plans."};
    const auto curves = step_curves(set);
    PlotScript script;
    plot_curves(figure, script, curves, context_place);
    AxisRange range;
    for (const CostCurve& curve : curves) {
        range.add(curve.ms.begin()->first);
        range.add(curve.ms.rbegin()->first);
    }
    set_context_axis(script, range);
    script.set("set ylabel 'ms'\nset yrange [0:*]");
    figure.script = curves.empty() ? "" : script.text();
    return figure;
}

Figure verify_figure(const ReportSet& set) {
    Figure figure{.title = "Cost of a verification",
                  .caption =
                      "Time of a pass of the whole model over several rows; one line per "
                      "context length."};
    const auto curves = verify_curves(set);
    PlotScript script;
    plot_curves(figure, script, curves, [](double n_rows) { return n_rows; });
    script.set("set xlabel 'rows'\nset ylabel 'ms'\nset yrange [0:*]");
    figure.script = curves.empty() ? "" : script.text();
    return figure;
}

}  // namespace

std::vector<Figure> cost_figures(const ReportSet& set) {
    std::vector<Figure> figures;
    for (Figure figure : {step_figure(set), verify_figure(set)}) {
        if (!figure.script.empty()) {
            figures.push_back(std::move(figure));
        }
    }
    if (figures.empty()) {
        figures.push_back({.title = "Cost of passes",
                           .caption = "Nothing to draw: no profile was saved for this model and "
                                      "machine (knap profile)."});
    }
    return figures;
}

}  // namespace knap
