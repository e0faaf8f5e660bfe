// Figures of speed over plain decoding: by task, and by length of the context.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "report.h"
#include "report_figures.h"

namespace knap {
namespace {

constexpr const char* kPlainLine = " with lines linetype black dashtype 2";

bool is_synthetic(const ReportRow& row) {
    return row.depth.has_value();
}

// What tasks are called: a task of several data files goes by the file, one with several tasks by
// both.
class TaskNames {
  public:
    explicit TaskNames(std::span<const ReportFile> files) {
        for (const ReportFile& file : files) {
            for (const ReportRow& row : file.rows) {
                tasks_of_[row.data].insert(row.task);
                data_of_[row.task].insert(row.data);
            }
        }
    }

    std::string of(const ReportRow& row) const {
        if (data_of_.at(row.task).size() == 1) {
            return row.task;
        }
        const std::string data = std::filesystem::path(row.data).stem().string();
        return tasks_of_.at(row.data).size() == 1 ? data : concat(data, " ", row.task);
    }

  private:
    std::map<std::string, std::set<std::string>> tasks_of_;
    std::map<std::string, std::set<std::string>> data_of_;
};

// The rows of a series by task, all together first.
struct TaskRows {
    std::string task;
    std::vector<ReportRows> rows;  // [n_series]
};

void add_row(std::vector<TaskRows>& tasks,
             const std::string& task,
             std::size_t series,
             std::size_t n_series,
             const ReportRow& row) {
    auto place = std::ranges::find(tasks, task, &TaskRows::task);
    if (place == tasks.end()) {
        tasks.push_back({task, std::vector<ReportRows>(n_series)});
        place = std::prev(tasks.end());
    }
    place->rows[series].push_back(&row);
}

std::vector<TaskRows> rows_by_task(const ReportSet& set) {
    const TaskNames names(set.files);
    std::vector<TaskRows> tasks;
    for (std::size_t i = 0; i < set.series.size(); ++i) {
        for (const ReportRow* row : set.series[i].rows) {
            if (!is_synthetic(*row) && row->speedup) {
                add_row(tasks, "all tasks", i, set.series.size(), *row);
                add_row(tasks, names.of(*row), i, set.series.size(), *row);
            }
        }
    }
    if (tasks.size() == 2) {
        tasks.erase(tasks.begin());  // one task is all there is
    }
    return tasks;
}

std::string interval_text(const ReportSpeedup& speedup) {
    const std::string mean = concat(format_fixed(speedup.mean, 2), "×");
    return speedup.low && speedup.high ? concat(mean, " (", format_fixed(*speedup.low, 2), " to ",
                                                format_fixed(*speedup.high, 2), ")")
                                       : mean;
}

std::string count_text(std::size_t n, const std::string& what) {
    return concat(n, " ", what, n == 1 ? "" : "s");
}

// A series in the task figure: each prompt as a faint dot, the mean with its interval.
void plot_tasks(PlotScript& script,
                const Series& series,
                std::size_t index,
                const std::vector<TaskRows>& tasks) {
    std::vector<std::vector<double>> dots;
    std::vector<std::vector<double>> bars;
    std::vector<TippedPoint> means;
    for (std::size_t task = 0; task < tasks.size(); ++task) {
        const ReportRows& rows = tasks[task].rows[index];
        const auto mean = mean_speedup(rows);
        if (!mean) {
            continue;
        }
        const auto n_series = static_cast<double>(tasks[task].rows.size());
        const double y =
            static_cast<double>(task) + 0.8 * ((static_cast<double>(index) + 0.5) / n_series - 0.5);
        for (const ReportRow* row : rows) {
            dots.push_back({row->speedup->mean, y});
        }
        bars.push_back(
            {mean->mean, y, mean->low.value_or(mean->mean), mean->high.value_or(mean->mean)});
        means.push_back({mean->mean, y,
                         concat(series.label, ", ", tasks[task].task, ": ", interval_text(*mean),
                                ", ", count_text(rows.size(), "prompt"))});
    }
    if (means.empty()) {
        return;
    }
    script.add_plot(concat(script.add_data(dots),
                           " with points pointtype 7 pointsize 0.35 "
                           "linecolor rgb '#a0",
                           series.color.substr(1), "'"));
    script.add_plot(concat(script.add_data(bars),
                           " using 1:2:3:4 with xerrorbars pointsize 0 "
                           "linewidth 2 linecolor rgb '",
                           series.color, "'"));
    script.add_points(means, look_of(series));
}

// The space for a mark: less where there are many.
int task_figure_height(std::size_t n_tasks, std::size_t n_series) {
    const double pitch = std::clamp(900.0 / static_cast<double>(n_tasks * n_series), 9.0, 18.0);
    const double per_task = std::max(26.0, pitch * static_cast<double>(n_series) + 6);
    return static_cast<int>(std::lround(70 + per_task * static_cast<double>(n_tasks)));
}

enum class Quantity { speedup, tokens_per_second };

// A point of a series: rows of about one length.
struct LengthBin {
    double place = 0;  // mean
    double value = 0;
    std::size_t n_rows = 0;
};

// Prompts are gathered to the nearest doubling, synthetic contexts by their very depth.
std::map<double, ReportRows> rows_by_length(const Series& series, bool wants_synthetic) {
    std::map<double, ReportRows> bins;
    for (const ReportRow* row : series.rows) {
        if (is_synthetic(*row) == wants_synthetic) {
            const double place = context_place(row->n_context());
            bins[wants_synthetic ? place : std::round(place)].push_back(row);
        }
    }
    return bins;
}

std::optional<double> value_of(const ReportRows& rows, Quantity quantity) {
    if (quantity == Quantity::tokens_per_second) {
        return mean_tokens_per_second(rows);
    }
    const auto speedup = mean_speedup(rows);
    return speedup ? std::optional(speedup->mean) : std::nullopt;
}

double mean_place(const ReportRows& rows) {
    double sum = 0;
    for (const ReportRow* row : rows) {
        sum += context_place(row->n_context());
    }
    return sum / static_cast<double>(rows.size());
}

std::vector<LengthBin> bins_of(const Series& series, bool wants_synthetic, Quantity quantity) {
    std::vector<LengthBin> bins;
    for (const auto& [_, rows] : rows_by_length(series, wants_synthetic)) {
        if (const auto value = value_of(rows, quantity)) {
            bins.push_back({mean_place(rows), *value, rows.size()});
        }
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
    {"Speedup against prompt length", "Prompts gathered to the nearest doubling of their length.",
     Quantity::speedup, false},
    {"Tokens per second against prompt length", "Speed of writing, without reading the prompt.",
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
    ContextRange range;
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
    script.set(is_speedup ? "set ylabel 'speed over plain decoding'" : "set ylabel 'tokens/s'");
    if (!is_speedup) {
        script.set("set yrange [0:*]");
    }
    figure.script = script.text();
    return figure;
}

}  // namespace

Figure task_figure(const ReportSet& set) {
    const std::vector<TaskRows> tasks = rows_by_task(set);
    Figure figure{.title = "Speedup by task",
                  .caption =
                      "Geometric means over prompts with their 95 % intervals; faint dots "
                      "are prompts. The dashed line is plain decoding."};
    if (tasks.empty()) {
        figure.caption = "Nothing to draw: the files hold synthetic contexts only.";
        return figure;
    }
    PlotScript script;
    const double bottom = static_cast<double>(tasks.size()) - 0.5;
    script.add_plot(concat(script.add_data({{1, -0.5}, {1, bottom}}), kPlainLine));
    for (std::size_t i = 0; i < set.series.size(); ++i) {
        plot_tasks(script, set.series[i], i, tasks);
        mention(figure, set.series[i]);
    }
    for (std::size_t task = 0; task < tasks.size(); ++task) {
        script.add_y_tick(tasks[task].task, static_cast<double>(task));
        script.set(concat("set arrow from graph 0, first ", static_cast<double>(task) - 0.5,
                          " to graph 1, first ", static_cast<double>(task) - 0.5,
                          " nohead back linewidth 0.5 linecolor rgb '#8b929c'"));
    }
    script.set(concat("set yrange [", bottom, ":-0.5]"));
    script.set("set xlabel 'speed over plain decoding'");
    script.set("unset grid\nset grid xtics");
    figure.script = script.text();
    figure.height = task_figure_height(tasks.size(), set.series.size());
    return figure;
}

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
