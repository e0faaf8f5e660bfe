#include "cli/report/figures.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cli/report/report.h"

namespace knap {
namespace {

constexpr double kLeastContext = 16;  // shorter contexts are drawn at this one

}  // namespace

PointLook look_of(const Series& series) {
    return {.color = series.color, .point_type = mark_of(series).point_type};
}

void mention(Figure& figure, const Series& series) {
    figure.legend.push_back({std::string(mark_of(series).glyph), series.color, series.label});
    figure.has_projection = figure.has_projection || series.is_projection;
}

std::string count_text(std::size_t n, const std::string& what) {
    return concat(n, " ", what, n == 1 ? "" : "s");
}

double context_place(double n_context) {
    return std::log2(std::max(n_context, kLeastContext));
}

void AxisRange::add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
}

void set_context_axis(PlotScript& script, const AxisRange& range) {
    const double first = std::floor(context_place(range.least));
    const double last = std::ceil(context_place(range.most));
    const double step = last - first > 8 ? 2 : 1;
    for (double place = first; place <= last; place += step) {
        script.add_x_tick(context_name(std::exp2(place)), place);
    }
    script.set(concat("set xrange [", context_place(range.least) - 0.4, ":",
                      context_place(range.most) + 0.4, "]"));
    script.set("set xlabel 'context, tokens'");
}

std::string context_name(double n_context) {
    constexpr double kThousand = 1024;
    if (n_context < kThousand) {
        return format_fixed(n_context, 0);
    }
    const double thousands = n_context / kThousand;
    return concat(format_fixed(thousands, std::round(thousands) == thousands ? 0 : 1), "K");
}

}  // namespace knap
