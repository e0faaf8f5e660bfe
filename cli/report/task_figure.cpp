// The figure of speed relative to plain decoding, by task.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "cli/report/figures.h"
#include "cli/report/report.h"

namespace knap {
namespace {

// The names of tasks. A task that occurs in several data files is named after the file, or after
// both when the file has several tasks.
class TaskNames {
  public:
    explicit TaskNames(std::span<const ReportFile> files) {
        for (const ReportFile& file : files) {
            for (const BenchRow& row : file.bench.rows) {
                tasks_of_[row.data].insert(row.task);
                data_of_[row.task].insert(row.data);
            }
        }
    }

    std::string of(const BenchRow& row) const {
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

// The rows of one task, by series. The first entry of a list has all tasks.
struct TaskRows {
    std::string task;
    std::vector<ReportRows> rows;  // [n_series]
};

void add_row(std::vector<TaskRows>& tasks,
             const std::string& task,
             std::size_t series,
             std::size_t n_series,
             const BenchRow& row) {
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
        for (const BenchRow* row : set.series[i].rows) {
            if (!row->is_synthetic()) {
                add_row(tasks, "all tasks", i, set.series.size(), *row);
                add_row(tasks, names.of(*row), i, set.series.size(), *row);
            }
        }
    }
    if (tasks.size() == 2) {
        tasks.erase(tasks.begin());  // there is only one task
    }
    return tasks;
}

std::string interval_text(const BenchSpeedup& speedup) {
    const std::string mean = concat(format_fixed(speedup.mean, 2), "×");
    return speedup.low && speedup.high ? concat(mean, " (", format_fixed(*speedup.low, 2), " to ",
                                                format_fixed(*speedup.high, 2), ")")
                                       : mean;
}

// Plots a series: each prompt as a faint dot, and the mean with its interval.
void plot_tasks(PlotScript& script,
                const Series& series,
                std::size_t index,
                const std::vector<TaskRows>& tasks) {
    std::vector<std::vector<double>> dots;
    std::vector<std::vector<double>> bars;
    std::vector<TippedPoint> means;
    for (std::size_t task = 0; task < tasks.size(); ++task) {
        const ReportRows& rows = tasks[task].rows[index];
        if (rows.empty()) {
            continue;
        }
        const BenchSpeedup mean = mean_speedup(rows);
        const auto n_series = static_cast<double>(tasks[task].rows.size());
        const double y =
            static_cast<double>(task) + 0.8 * ((static_cast<double>(index) + 0.5) / n_series - 0.5);
        for (const BenchRow* row : rows) {
            dots.push_back({row->speedup.mean, y});
        }
        bars.push_back({mean.mean, y, mean.low.value_or(mean.mean), mean.high.value_or(mean.mean)});
        means.push_back({mean.mean, y,
                         concat(series.label, ", ", tasks[task].task, ": ", interval_text(mean),
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

// The axis covers every prompt, but not every interval: with few prompts, one can be far wider.
void set_speed_axis(PlotScript& script, const std::vector<TaskRows>& tasks) {
    AxisRange range;
    range.add(1);
    for (const TaskRows& task : tasks) {
        for (const ReportRows& rows : task.rows) {
            for (const BenchRow* row : rows) {
                range.add(row->speedup.mean);
            }
        }
    }
    const double margin = std::max(0.05, 0.2 * (range.most - range.least));
    script.set(
        concat("set xrange [", std::max(0.0, range.least - margin), ":", range.most + margin, "]"));
}

// Marks get less space when there are many.
int task_figure_height(std::size_t n_tasks, std::size_t n_series) {
    const double pitch = std::clamp(900.0 / static_cast<double>(n_tasks * n_series), 9.0, 18.0);
    const double per_task = std::max(26.0, pitch * static_cast<double>(n_series) + 6);
    return static_cast<int>(std::lround(70 + per_task * static_cast<double>(n_tasks)));
}

}  // namespace

Figure task_figure(const ReportSet& set) {
    const std::vector<TaskRows> tasks = rows_by_task(set);
    Figure figure{.title = "Speedup by task",
                  .caption =
                      "Geometric means over prompts with their 95 % intervals; faint dots "
                      "are prompts. The dashed line is plain decoding."};
    if (tasks.empty()) {
        figure.caption = "Nothing to draw: the files contain only synthetic contexts.";
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
    script.set("set xlabel 'speedup over plain decoding'");
    script.set("unset grid\nset grid xtics");
    set_speed_axis(script, tasks);
    figure.script = script.text();
    figure.height = task_figure_height(tasks.size(), set.series.size());
    return figure;
}

}  // namespace knap
