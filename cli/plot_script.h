// Builds a gnuplot script (plot.h) from data, settings and plot elements.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace knap {

// Makes `text` safe to quote in a script: it can end neither the quotes nor, as a tooltip on a
// page, the script call that shows it. Cuts it to `max_letters`.
std::string plot_text(std::string_view text, std::size_t max_letters = 80);

// A point with a tooltip.
struct TippedPoint {
    double x = 0;
    double y = 0;
    std::string tip;
};

struct PointLook {
    std::string color;  // "#rrggbb"
    int point_type = 7;
    double size = 0.8;
};

class PlotScript {
  public:
    PlotScript();

    // Adds a setting such as "set xlabel 'rows'".
    void set(const std::string& line) { settings_ += line + "\n"; }
    // Adds a custom tick. Custom ticks replace those at round numbers.
    void add_x_tick(std::string_view label, double place);
    void add_y_tick(std::string_view label, double place);

    // Adds a data block and returns its name, for add_plot().
    std::string add_data(const std::vector<std::vector<double>>& rows);
    // Adds an element to plot, such as "$data0 using 1:2 with lines".
    void add_plot(const std::string& element) { plots_.push_back(element); }
    void add_points(const std::vector<TippedPoint>& points, const PointLook& look);

    bool has_plots() const { return !plots_.empty(); }
    std::string text() const;

  private:
    std::string add_block(const std::string& lines);

    std::string data_;
    std::string settings_;
    std::string x_ticks_;  // "'a' 0, 'b' 1"
    std::string y_ticks_;
    std::vector<std::string> plots_;
    std::size_t n_blocks_ = 0;
};

}  // namespace knap
