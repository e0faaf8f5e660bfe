// A script for gnuplot (plot.h), put together piece by piece: data, settings and what is plotted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace knap {

// `text` as a word of a script. Text from outside can neither end the quotes nor, where it becomes
// a tip of a figure on a page, the call that shows it. Cut at `max_letters`.
std::string plot_text(std::string_view text, std::size_t max_letters = 80);

// A point with the words that appear when it is pointed at.
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

    // A line such as "set xlabel 'rows'".
    void set(const std::string& line) { settings_ += line + "\n"; }
    // Ticks of one's own, instead of those at round numbers.
    void add_x_tick(std::string_view label, double place);
    void add_y_tick(std::string_view label, double place);

    // Adds a block of numbers and returns its name, for add_plot().
    std::string add_data(const std::vector<std::vector<double>>& rows);
    // Something to plot: "$data0 using 1:2 with lines".
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
