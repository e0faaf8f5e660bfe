#include "tools/exactness/summary.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/text.h"

namespace knap {
namespace {

template <typename Value>
Value& entry_of(std::vector<std::pair<std::string, Value>>& entries, const std::string& name) {
    const auto found = std::ranges::find(entries, name, &std::pair<std::string, Value>::first);
    return found != entries.end() ? found->second : entries.emplace_back(name, Value{}).second;
}

void add(ExactnessCounts& counts, std::span<const ComparedAnswer> answers) {
    std::int64_t n_drafted = 0;
    for (const ComparedAnswer& answer : answers) {
        counts.n_tokens += answer.n_tokens;
        n_drafted += answer.n_drafted;
        counts.n_accepted += answer.n_accepted;
        counts.n_copied += answer.n_copied;
        counts.n_planned += answer.n_planned;
        counts.n_cascaded += answer.n_cascaded;
        counts.n_forced += answer.n_forced;
        counts.n_differing += answer.difference ? 1 : 0;
    }
    counts.n_drafted += n_drafted;
    ++counts.n_cases;
    counts.n_undrafted += n_drafted == 0 ? 1 : 0;
}

// The answers of a case, by what was drawn for each.
void add_by(ExactnessRows& rows, const CompletedCase& done, std::string ComparedAnswer::*drawn) {
    std::vector<std::pair<std::string, std::vector<ComparedAnswer>>> groups;
    for (const ComparedAnswer& answer : done.answers) {
        entry_of(groups, answer.*drawn).push_back(answer);
    }
    for (const auto& [value, answers] : groups) {
        add(entry_of(rows, value), answers);
    }
}

}  // namespace

ExactnessSummary summary_of(std::span<const CompletedCase> cases) {
    ExactnessSummary summary;
    for (const CompletedCase& done : cases) {
        const std::string model = std::filesystem::path(done.model).filename().string();
        add(summary.all, done.answers);
        add(entry_of(summary.strategies, done.strategy), done.answers);
        add(entry_of(summary.contenders, done.contender), done.answers);
        add(entry_of(summary.models, concat(model, ", ", done.kernels)), done.answers);
        add_by(entry_of(summary.draws, "sampling"), done, &ComparedAnswer::sampling);
        add_by(entry_of(summary.draws, "constraint"), done, &ComparedAnswer::constraint);
        for (const auto& [name, value] : done.variant) {
            add(entry_of(entry_of(summary.draws, name), value), done.answers);
        }
        if (done.differs()) {
            summary.differing.push_back(done);
        }
    }
    for (auto& [name, rows] : summary.draws) {
        std::ranges::sort(rows, {}, &ExactnessRows::value_type::first);
    }
    return summary;
}

}  // namespace knap
