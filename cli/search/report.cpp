#include "cli/search/report.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "base/text.h"
#include "cli/report/report.h"
#include "graph/plan_text.h"

namespace knap {
namespace {

constexpr int kColumn = 10;
// The JSON object has all of them.
constexpr std::size_t kShownTrials = 10;

std::vector<PlanTrial> fastest_first(std::vector<PlanTrial> trials) {
    std::ranges::stable_sort(trials, std::ranges::greater{},
                             [](const PlanTrial& trial) { return trial.measured.speed; });
    return trials;
}

std::string times_plain(double speed) {
    return format_fixed(speed, 2) + "x";
}

void write_row(std::ostream& out,
               std::initializer_list<std::string> numbers,
               const std::string& plan) {
    for (const std::string& number : numbers) {
        out << std::setw(kColumn) << number;
    }
    out << "  " << plan << '\n';
}

void write_trials(std::ostream& out, const OfflineSearch& search) {
    write_row(out, {"speed", "tokens/s", "accepted", "length"}, "plan");
    auto trials = fastest_first(search.trials);
    const std::size_t n_shown = std::min(trials.size(), kShownTrials);
    trials.erase(trials.begin() + static_cast<std::ptrdiff_t>(n_shown), trials.end());
    for (const PlanTrial& trial : trials) {
        write_row(
            out,
            {times_plain(trial.measured.speed), format_fixed(trial.measured.tokens_per_second, 1),
             format_percent(trial.measured.acceptance_rate), concat(trial.draft_max)},
            to_string(trial.plan));
    }
    if (n_shown < search.trials.size()) {
        out << "  " << search.trials.size() - n_shown << " slower ones, see --json\n";
    }
}

void write_verdict(std::ostream& out,
                   const OfflineSearch& search,
                   const std::filesystem::path& file) {
    const PlanTrial* best = best_trial(search);
    if (best == nullptr) {
        out << "No plan was tried\n";
        return;
    }
    if (best->measured.speed <= 1) {
        out << "No plan beats plain decoding on these prompts\n";
    }
    if (!file.empty()) {
        out << "To draft with the best plan: knap run --strategy "
            << to_string(search.settings.method) << " --plan-file " << file.string() << '\n';
    }
}

}  // namespace

std::string to_table(const OfflineSearch& search,
                     const RuntimeConfig& config,
                     const std::filesystem::path& file) {
    std::ostringstream out;
    out << config.model_path.string() << ", " << config.n_threads
        << (config.n_threads == 1 ? " thread; " : " threads; ") << to_string(search.settings.method)
        << ": " << search.trials.size() << " trials of " << search.settings.n_prompts
        << " prompts, " << search.settings.n_predict << " tokens after each\n"
        << "Speeds are relative to plain decoding, measured in turns\n";
    write_trials(out, search);
    write_verdict(out, search, file);
    return out.str();
}

}  // namespace knap
