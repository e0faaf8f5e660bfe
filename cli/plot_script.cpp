#include "cli/plot_script.h"

#include <sstream>

#include "base/text.h"

namespace knap {
namespace {

// The replacement for a character that has a meaning inside quotes, in gnuplot or in a page's
// script.
std::string_view harmless(char letter) {
    switch (letter) {
        case '\'':
            return "’";
        case '"':
            return "”";
        case '\\':
            return "/";
        case '`':
            return "´";
        default:
            return " ";
    }
}

bool is_harmless(char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return byte >= ' ' && byte != 0x7f && letter != '\'' && letter != '"' && letter != '\\' &&
           letter != '`';
}

bool starts_letter(char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;  // not a UTF-8 continuation byte
}

constexpr std::size_t kMaxTickLetters = 22;

void add_tick(std::string& ticks, std::string_view label, double place) {
    ticks += concat(ticks.empty() ? "'" : ", '", plot_text(label, kMaxTickLetters), "' ", place);
}

}  // namespace

std::string plot_text(std::string_view text, std::size_t max_letters) {
    std::string line;
    std::size_t n_letters = 0;
    for (const char letter : text) {
        n_letters += starts_letter(letter) ? 1 : 0;
        if (n_letters > max_letters) {
            return line + "…";
        }
        line += is_harmless(letter) ? std::string(1, letter) : std::string(harmless(letter));
    }
    return line;
}

PlotScript::PlotScript() {
    set("set encoding utf8");
    set("set key off");
    set("set border 3 linewidth 1");
    set("set tics nomirror scale 0.4");
    set("set grid linewidth 1");
}

void PlotScript::add_x_tick(std::string_view label, double place) {
    add_tick(x_ticks_, label, place);
}

void PlotScript::add_y_tick(std::string_view label, double place) {
    add_tick(y_ticks_, label, place);
}

std::string PlotScript::add_block(const std::string& lines) {
    const std::string name = concat("$data", n_blocks_++);
    data_ += concat(name, " << END\n", lines, "END\n");
    return name;
}

std::string PlotScript::add_data(const std::vector<std::vector<double>>& rows) {
    std::ostringstream lines;
    lines.precision(10);  // colours are 32-bit numbers
    for (const auto& row : rows) {
        for (const double value : row) {
            lines << value << ' ';
        }
        lines << '\n';
    }
    return add_block(lines.str());
}

void PlotScript::add_points(const std::vector<TippedPoint>& points, const PointLook& look) {
    std::string lines;
    for (const TippedPoint& point : points) {
        lines += concat(point.x, " ", point.y, " \"", plot_text(point.tip, 200), "\"\n");
    }
    if (!points.empty()) {
        add_plot(concat(add_block(lines), " using 1:2:3 with labels hypertext point pointtype ",
                        look.point_type, " pointsize ", look.size, " linecolor rgb '", look.color,
                        "'"));
    }
}

std::string PlotScript::text() const {
    std::string script = data_ + settings_;
    script += x_ticks_.empty() ? "" : concat("set xtics (", x_ticks_, ")\n");
    script += y_ticks_.empty() ? "" : concat("set ytics (", y_ticks_, ")\n");
    for (std::size_t i = 0; i < plots_.size(); ++i) {
        script += concat(i == 0 ? "plot " : ", \\\n    ", plots_[i]);
    }
    return script + "\n";
}

}  // namespace knap
