#include "tools/measure/report/bench_summary.h"

#include <algorithm>
#include <set>

namespace knap {
namespace {

// Adds up rows of one strategy, rule and task.
class Group {
  public:
    Group(const BenchRow& first, std::string task) {
        summary_.strategy = first.strategy;
        summary_.acceptance = first.acceptance;
        summary_.task = std::move(task);
        summary_.is_projection = first.is_projection;
    }

    bool is_of(const BenchRow& row, const std::string& task) const {
        return summary_.strategy == row.strategy && summary_.acceptance == row.acceptance &&
               summary_.task == task;
    }

    void add(const BenchRow& row) {
        speedups_.push_back(row.speedup.mean);
        request_speedups_.push_back(row.request_speedup.mean);
        speeds_.push_back(row.tokens_per_second);
        n_drafted_ += row.n_drafted;
        n_accepted_ += row.n_accepted;
        n_rounds_ += row.rounds;
        n_tokens_ += row.rounds * row.mean_accepted_length;
    }

    BenchSummary total() const {
        BenchSummary total = summary_;
        total.n_prompts = static_cast<int>(speedups_.size());
        total.speedup = geometric_mean(speedups_);
        total.lowest_speedup = std::ranges::min(speedups_);
        total.request_speedup = geometric_mean(request_speedups_);
        total.tokens_per_second = geometric_mean(speeds_).mean;
        if (n_drafted_ > 0) {
            total.acceptance_rate = n_accepted_ / n_drafted_;
        }
        total.mean_accepted_length = n_rounds_ > 0 ? n_tokens_ / n_rounds_ : 0;
        return total;
    }

  private:
    BenchSummary summary_;
    std::vector<double> speedups_;
    std::vector<double> request_speedups_;
    std::vector<double> speeds_;
    double n_drafted_ = 0;
    double n_accepted_ = 0;
    double n_rounds_ = 0;
    double n_tokens_ = 0;
};

void add_to_group(std::vector<Group>& groups, const BenchRow& row, const std::string& task) {
    auto group = std::ranges::find_if(groups, [&](const Group& g) { return g.is_of(row, task); });
    if (group == groups.end()) {
        groups.emplace_back(row, task);
        group = std::prev(groups.end());
    }
    group->add(row);
}

bool has_several_tasks(const std::vector<BenchRow>& rows) {
    std::set<std::string> tasks;
    for (const BenchRow& row : rows) {
        tasks.insert(row.task);
    }
    return tasks.size() > 1;
}

}  // namespace

std::vector<BenchSummary> summarise(const std::vector<BenchRow>& rows) {
    std::vector<Group> groups;
    for (const BenchRow& row : rows) {
        add_to_group(groups, row, /*task=*/"");
    }
    if (has_several_tasks(rows)) {
        for (const BenchRow& row : rows) {
            if (!row.task.empty()) {
                add_to_group(groups, row, row.task);
            }
        }
    }
    std::vector<BenchSummary> summaries;
    for (const Group& group : groups) {
        summaries.push_back(group.total());
    }
    return summaries;
}

}  // namespace knap
