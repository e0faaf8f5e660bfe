#include "cli/search/report.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "base/text.h"
#include "cli/report/report.h"
#include "forward/plan_text.h"

namespace knap {
namespace {

constexpr int kColumn = 10;
constexpr int kOriginColumn = 16;
// The JSON object has all trials.
constexpr std::size_t kShownTrials = 10;

std::vector<PlanTrial> fastest_first(std::vector<PlanTrial> trials) {
    std::ranges::stable_sort(trials, std::ranges::greater{},
                             [](const PlanTrial& trial) { return trial.measured.speed; });
    return trials;
}

std::string counted(std::size_t n, std::string_view what) {
    return concat(n, " ", what, n == 1 ? "" : "s");
}

std::string times_plain(double speed) {
    return format_fixed(speed, 2) + "x";
}

void write_row(std::ostream& out,
               std::initializer_list<std::string> numbers,
               std::string_view origin,
               const std::string& plan) {
    for (const std::string& number : numbers) {
        out << std::setw(kColumn) << number;
    }
    out << std::setw(kOriginColumn) << origin << "  " << plan << '\n';
}

void write_trials(std::ostream& out, const OfflineSearch& search) {
    write_row(out, {"speed", "tokens/s", "accepted", "length"}, "origin", "plan");
    auto trials = fastest_first(search.trials);
    const std::size_t n_shown = std::min(trials.size(), kShownTrials);
    trials.erase(trials.begin() + static_cast<std::ptrdiff_t>(n_shown), trials.end());
    for (const PlanTrial& trial : trials) {
        write_row(
            out,
            {times_plain(trial.measured.speed), format_fixed(trial.measured.tokens_per_second, 1),
             format_percent(trial.measured.acceptance_rate), concat(trial.draft_max)},
            to_string(trial.origin), to_string(trial.plan));
    }
    if (n_shown < search.trials.size()) {
        out << "  " << search.trials.size() - n_shown << " slower ones, see --json\n";
    }
}

// Reports the origin of the best plan; a grid has only one origin, so nothing is written.
void write_origin(std::ostream& out, const OfflineSearch& search, const PlanTrial& best) {
    const auto n_suggested =
        std::ranges::count(search.trials, TrialOrigin::optimiser, &PlanTrial::origin);
    if (best.origin == TrialOrigin::optimiser) {
        out << "The best plan is the optimiser's\n";
    } else if (best.origin == TrialOrigin::starting_point) {
        out << "The best plan is a starting point, made by hand"
            << (n_suggested > 0
                    ? concat(": none of the ", n_suggested, " that the optimiser chose is faster\n")
                    : "; the optimiser has not chosen any yet\n");
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
    write_origin(out, search, *best);
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
        << ": " << counted(search.trials.size(), "trial") << " of "
        << counted(static_cast<std::size_t>(search.settings.n_prompts), "prompt") << ", "
        << search.settings.n_predict << " tokens after each\n"
        << "Speeds are relative to plain decoding, measured in turns\n";
    write_trials(out, search);
    write_verdict(out, search, file);
    return out.str();
}

}  // namespace knap
