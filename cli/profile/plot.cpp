#include "cli/profile/plot.h"

#include <cmath>
#include <sstream>
#include <vector>

#include "base/text.h"
#include "cli/profile/axes.h"

namespace knap {
namespace {

// A line or points in a panel. The columns are x, y and, with error bars, a spread.
struct Curve {
    std::string title;
    std::string style;                      // "lines", "points", "yerrorbars", "boxes"
    std::vector<std::vector<double>> rows;  // [n] columns
};

struct Panel {
    std::string title;
    std::string x_label;
    std::string y_label;
    std::string settings;  // gnuplot commands
    std::vector<Curve> curves;
};

constexpr int kLinePoints = 48;  // of a fitted curve over contexts

// Contexts over the measured range, in geometric steps.
std::vector<int> context_grid(const CostProfile& profile) {
    const auto measured = measured_contexts(profile);
    const double first = std::max(measured.front(), 1);
    const double factor = std::max(measured.back(), 1) / first;
    std::vector<int> grid;
    for (int i = 0; i <= kLinePoints; ++i) {
        const int n_context =
            static_cast<int>(std::lround(first * std::pow(factor, double(i) / kLinePoints)));
        if (grid.empty() || grid.back() < n_context) {
            grid.push_back(n_context);
        }
    }
    return grid;
}

Curve attention_fit(const CostProfile& profile,
                    const CostModel& costs,
                    const LayerClass& of,
                    const Level& level) {
    Curve curve{.title = concat(level_name(level), class_suffix(profile, of)), .style = "lines"};
    for (const int n_context : context_grid(profile)) {
        curve.rows.push_back({double(n_context), costs.attention_ms(of.first, level, n_context)});
    }
    return curve;
}

Curve attention_measured(const CostProfile& profile,
                         const CostModel& costs,
                         const LayerClass& of,
                         const Level& level) {
    Curve curve{.title = concat(level_name(level), class_suffix(profile, of), ", measured"),
                .style = "points"};
    for (const AttentionPoint& point : attention_points(profile, costs, of.first, level)) {
        curve.rows.push_back({double(point.n_context), point.ms});
    }
    return curve;
}

Panel attention_panel(const CostProfile& profile, const CostModel& costs) {
    Panel panel{.title = "one attention: t_attn(n)",
                .x_label = "context n, tokens",
                .y_label = "ms",
                .settings = "set logscale x 2\nset key top left\n"};
    for (const LayerClass& of : layer_classes(profile)) {
        for (const Level& level : measured_levels(profile)) {
            panel.curves.push_back(attention_fit(profile, costs, of, level));
            panel.curves.push_back(attention_measured(profile, costs, of, level));
        }
    }
    return panel;
}

Panel parts_panel(const CostProfile& profile, const CostModel& costs) {
    std::string ticks;
    Curve bars{.title = "fitted", .style = "boxes"};
    const auto add = [&](const std::string& name, double ms) {
        const auto x = bars.rows.size();
        ticks += concat(ticks.empty() ? "" : ", ", "'", name, "' ", x);
        bars.rows.push_back({double(x), ms});
    };
    add("fixed", costs.fixed_ms());
    add("t_head", costs.head_ms());
    for (const LayerClass& of : layer_classes(profile)) {
        add(concat("t_mlp", class_suffix(profile, of)), costs.mlp_ms(of.first));
    }
    return {.title = "parts that do not grow with the context",
            .x_label = "",
            .y_label = "ms",
            .settings = concat("set xtics (", ticks, ")\nset yrange [0:*]\nset xrange [-1:",
                               bars.rows.size(), "]\nset boxwidth 0.6\nset style fill solid 0.5\n"),
            .curves = {bars}};
}

Panel verify_panel(const CostProfile& profile, const CostModel& costs) {
    Panel panel{.title = "the whole model over k rows: t_verify(k, n)",
                .x_label = "rows k",
                .y_label = "ms",
                .settings = "set key top left\nset yrange [0:*]\n"};
    const auto rows = measured_rows(profile);
    for (const int n_context : measured_contexts(profile)) {
        Curve fit{.title = concat("n = ", n_context), .style = "lines"};
        for (int n_rows = 1; n_rows <= rows.back(); ++n_rows) {
            fit.rows.push_back({double(n_rows), costs.verify_ms(n_rows, n_context)});
        }
        Curve measured{.title = concat("n = ", n_context, ", measured"), .style = "yerrorbars"};
        for (const int n_rows : rows) {
            if (const CostSample* sample = whole_pass(profile, n_context, n_rows)) {
                measured.rows.push_back({double(n_rows), sample->ms, sample->spread_ms});
            }
        }
        panel.curves.push_back(std::move(fit));
        panel.curves.push_back(std::move(measured));
    }
    return panel;
}

Panel residual_panel(const CostProfile& profile, const CostModel& costs) {
    Curve one{.title = "one row", .style = "points"};
    Curve several{.title = "several rows", .style = "points"};
    for (const CostSample& sample : profile.samples) {
        if (const auto fitted = fitted_ms(costs, sample)) {
            Curve& curve = sample.n_rows == 1 ? one : several;
            curve.rows.push_back({sample.ms, 100 * (*fitted / sample.ms - 1)});
        }
    }
    return {.title = "residuals of the fit",
            .x_label = "measured pass, ms",
            .y_label = "fitted / measured - 1, %",
            .settings = "set logscale x\nset xzeroaxis\nset key top left\n",
            .curves = {one, several}};
}

std::string block_name(std::size_t panel, std::size_t curve) {
    return concat("$panel", panel, "_", curve);
}

void write_data(std::ostream& out, const std::string& name, const Curve& curve) {
    out << name << " << END\n";
    for (const auto& row : curve.rows) {
        for (const double value : row) {
            out << value << ' ';
        }
        out << '\n';
    }
    out << "END\n";
}

// Measurements follow their fit and share its colour.
void write_plot(std::ostream& out, const Panel& panel, std::size_t index) {
    out << "reset\nset grid\nset title '" << panel.title << "'\nset xlabel '" << panel.x_label
        << "'\nset ylabel '" << panel.y_label << "'\n"
        << panel.settings;
    std::string separator = "plot ";
    std::size_t color = 0;
    for (std::size_t i = 0; i < panel.curves.size(); ++i) {
        const Curve& curve = panel.curves[i];
        if (curve.rows.empty()) {
            continue;
        }
        const bool follows_fit =
            i > 0 && panel.curves[i - 1].style == "lines" && curve.style != "lines";
        color += follows_fit ? 0 : 1;
        out << separator << block_name(index, i) << " title '" << curve.title << "' with "
            << curve.style << " linecolor " << color
            << (curve.style == "lines" ? "" : " pointtype 7")
            << (follows_fit ? " pointsize 0.6" : "");
        separator = ", \\\n    ";
    }
    out << '\n';
}

}  // namespace

std::string profile_plot_script(const CostProfile& profile, const CostModel& costs) {
    const Panel panels[] = {attention_panel(profile, costs), parts_panel(profile, costs),
                            verify_panel(profile, costs), residual_panel(profile, costs)};
    std::ostringstream out;
    for (std::size_t panel = 0; panel < std::size(panels); ++panel) {
        for (std::size_t i = 0; i < panels[panel].curves.size(); ++i) {
            write_data(out, block_name(panel, i), panels[panel].curves[i]);
        }
    }
    out << "set multiplot layout 2,2\n";
    for (std::size_t panel = 0; panel < std::size(panels); ++panel) {
        write_plot(out, panels[panel], panel);
    }
    out << "unset multiplot\n";
    return out.str();
}

}  // namespace knap
