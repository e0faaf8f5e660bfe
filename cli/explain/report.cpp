#include "cli/explain/report.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "base/text.h"
#include "cli/explain/learned_text.h"
#include "cli/explain/plan_picture.h"
#include "cli/profile/report.h"
#include "cli/report/report.h"
#include "forward/plan_text.h"
#include "runtime/files/learned_file.h"

namespace knap {
namespace {

using nlohmann::ordered_json;

constexpr int kCellWidth = 10;
// The table shows only the fastest candidates; the JSON object has all.
constexpr std::size_t kShownCandidates = 12;

// The plan that the picture shows: the chosen one, or else the candidate with the best prediction.
struct ShownPlan {
    const ModulePlan& plan;
    const PlanCandidate* candidate;  // null: knapspec found the plan later, while decoding
};

ShownPlan shown_plan(const Explanation& explanation) {
    const auto& candidates = explanation.candidates;
    if (!explanation.chosen) {
        return {candidates.front().plan, &candidates.front()};
    }
    const auto found = std::ranges::find(candidates, *explanation.chosen, &PlanCandidate::plan);
    return {*explanation.chosen, found == candidates.end() ? nullptr : &*found};
}

std::string speed(double value) {
    return value > 0 ? format_fixed(value, 2) + "x" : "-";
}

// Requires candidates.
bool is_plain_fastest(const Explanation& explanation) {
    return explanation.candidates.front().predicted_speed < 1;
}

std::string plan_title(const Explanation& explanation) {
    const ShownPlan shown = shown_plan(explanation);
    const std::string predicted =
        shown.candidate != nullptr
            ? concat(", predicted ", speed(shown.candidate->predicted_speed), " plain decoding")
            : "";
    return concat(to_string(shown.plan), predicted);
}

void write_head(std::ostream& out, const Explanation& explanation, const RuntimeConfig& config) {
    out << config.model_path.string() << ", " << config.n_threads
        << (config.n_threads == 1 ? " thread" : " threads") << "; prompt of "
        << explanation.n_prompt << " tokens, " << explanation.plain.n_generated << " generated\n"
        << "A plain step takes " << format_fixed(explanation.plain_step_ms, 3)
        << " ms; cost of verifying k rows in plain steps:";
    for (const VerifyPrice& price : explanation.verify) {
        out << (price.n_rows == 1 ? " " : ", ") << price.n_rows << ": "
            << format_fixed(price.steps, 2);
    }
    out << "\nCosts are "
        << (explanation.has_saved_costs
                ? "those of the saved profile\n"
                : "measured for this run only; `knap profile` saves them\n");
}

void write_picture(std::ostream& out, const Explanation& explanation, bool has_colors) {
    if (!has_plan(explanation)) {
        out << "\nPlain decoding is chosen. No plan can be faster here: the prompt is too short "
               "for\n"
               "windows, or no plan would save enough to pay for its verification, even if every\n"
               "draft were accepted\n";
        return;
    }
    out << (explanation.chosen              ? "\nThe plan that knapspec chose: "
            : is_plain_fastest(explanation) ? "\nPlain decoding is chosen: no plan is predicted to "
                                              "be faster. The best candidate: "
                                            : "\nPlain decoding is chosen. The best candidate: ")
        << plan_title(explanation) << '\n'
        << plan_picture(shown_plan(explanation).plan, has_colors);
}

void write_cells(std::ostream& out, std::initializer_list<std::string> cells) {
    for (const std::string& cell : cells) {
        out << std::setw(kCellWidth) << cell;
    }
}

void write_candidate(std::ostream& out, const PlanCandidate& candidate) {
    const auto& [plan, replay, draft_ratio, acceptance, length, predicted_speed, trial] = candidate;
    write_cells(out, {format_fixed(draft_ratio, 2),
                      replay ? concat(replay->n_agreed, "/", replay->n_rows) : "-",
                      format_percent(acceptance),
                      trial ? format_percent(trial->result.speculation.acceptance_rate) : "-",
                      concat(length), speed(predicted_speed), trial ? speed(trial->speed) : "-"});
    out << "  " << to_string(plan) << '\n';
}

void write_run(std::ostream& out, const Trial& trial) {
    const SpeculationStatistics& drafts = trial.result.speculation;
    write_cells(
        out, {"", "", "", drafts.n_drafted > 0 ? format_percent(drafts.acceptance_rate) : "-", "",
              "", speed(trial.speed)});
    out << "  " << trial.result.strategy << '\n';
}

void write_candidates(std::ostream& out, const Explanation& explanation) {
    out << "\nDraft sources by predicted speed; speeds are relative to plain decoding\n";
    write_cells(out,
                {"step", "agreed", "estimated", "accepted", "length", "predicted", "measured"});
    out << "  plan or strategy\n";
    const auto& candidates = explanation.candidates;
    const std::size_t n_shown = std::min(candidates.size(), kShownCandidates);
    for (std::size_t i = 0; i < n_shown; ++i) {
        write_candidate(out, candidates[i]);
    }
    if (n_shown < candidates.size()) {
        out << "  " << candidates.size() - n_shown << " more, see --json\n";
    }
    write_run(out, explanation.lookup);
    write_run(out, explanation.knapspec);
    out << "  step: draft step / plain step; agreed: replayed rows that agree with the whole "
           "model;\n"
           "  estimated: acceptance rate before the run; accepted: measured acceptance rate\n";
}

void write_times(std::ostream& out, const Timings& timings) {
    out << "\nWhere knapspec's time goes: " << format_fixed(timings.decode_ms, 1) << " ms\n";
    const auto write = [&](std::string_view name, double ms) {
        out << "  " << std::left << std::setw(8) << name << std::right << std::setw(kCellWidth)
            << format_percent(timings.decode_ms > 0 ? ms / timings.decode_ms : 0) << '\n';
    };
    write("draft", timings.draft_ms);
    write("verify", timings.verify_ms);
    write("search", timings.search_ms);
    write("other", timings.other_ms);
}

void write_decisions(std::ostream& out, const std::vector<Decision>& decisions) {
    out << "\nWhat knapspec decided\n";
    if (decisions.empty()) {
        out << "  nothing: the answer was too short\n";
        return;
    }
    write_cells(out, {"token", "predicted", "measured"});
    out << "  draft source: reason\n";
    for (const Decision& decision : decisions) {
        write_cells(out,
                    {concat(decision.token), speed(decision.predicted), speed(decision.measured)});
        out << "  " << decision.source << ": " << decision.reason << '\n';
    }
}

// Every run except plain decoding.
std::vector<const Trial*> trials_of(const Explanation& explanation) {
    std::vector<const Trial*> trials{&explanation.lookup, &explanation.knapspec};
    for (const PlanCandidate& candidate : explanation.candidates) {
        if (candidate.trial) {
            trials.push_back(&*candidate.trial);
        }
    }
    return trials;
}

bool are_texts_equal(const Explanation& explanation) {
    return std::ranges::all_of(trials_of(explanation), &Trial::is_plain_text);
}

ordered_json trial_json(const Trial& trial, const RuntimeConfig& config) {
    return {{"speed", trial.speed},
            {"is_plain_text", trial.is_plain_text},
            {"result", to_json(trial.result, config)}};
}

ordered_json candidate_json(const PlanCandidate& candidate, const RuntimeConfig& config) {
    ordered_json object{{"plan", to_string(candidate.plan)},
                        {"source", nullptr},
                        {"agreed", nullptr},
                        {"n_rows", 0},
                        {"draft_ratio", candidate.draft_ratio},
                        {"acceptance", candidate.acceptance},
                        {"length", candidate.length},
                        {"predicted_speed", candidate.predicted_speed},
                        {"trial", nullptr}};
    if (candidate.replay) {
        object["source"] = to_string(candidate.replay->source);
        object["agreed"] = candidate.replay->n_agreed;
        object["n_rows"] = candidate.replay->n_rows;
    }
    if (candidate.trial) {
        object["trial"] = trial_json(*candidate.trial, config);
    }
    return object;
}

}  // namespace

bool has_plan(const Explanation& explanation) {
    return explanation.chosen || !explanation.candidates.empty();
}

std::string to_text(const Explanation& explanation, const RuntimeConfig& config, bool has_colors) {
    std::ostringstream out;
    write_head(out, explanation, config);
    write_picture(out, explanation, has_colors);
    write_candidates(out, explanation);
    write_times(out, explanation.knapspec.result.timings);
    write_decisions(out, explanation.knapspec.result.decisions);
    if (explanation.learned) {
        write_learned(out, *explanation.learned);
    }
    out << (are_texts_equal(explanation)
                ? "\nAll runs wrote the text of plain decoding\n"
                : "\nNot all runs wrote the text of plain decoding: see `knap check`\n");
    return out.str();
}

ordered_json to_json(const Explanation& explanation, const RuntimeConfig& config) {
    auto verify = ordered_json::array();
    for (const VerifyPrice& price : explanation.verify) {
        verify.push_back({{"n_rows", price.n_rows}, {"steps", price.steps}});
    }
    auto candidates = ordered_json::array();
    for (const PlanCandidate& candidate : explanation.candidates) {
        candidates.push_back(candidate_json(candidate, config));
    }
    return {{"n_prompt", explanation.n_prompt},
            {"has_saved_costs", explanation.has_saved_costs},
            {"plain_step_ms", explanation.plain_step_ms},
            {"verify", verify},
            {"chosen", explanation.chosen ? ordered_json(to_string(*explanation.chosen))
                                          : ordered_json(nullptr)},
            {"candidates", candidates},
            {"plain", to_json(explanation.plain, config)},
            {"lookup", trial_json(explanation.lookup, config)},
            {"knapspec", trial_json(explanation.knapspec, config)},
            {"learned",
             explanation.learned ? learned_to_json(*explanation.learned) : ordered_json(nullptr)}};
}

std::string explanation_plot_script(const Explanation& explanation) {
    return plan_plot_script(shown_plan(explanation).plan, plan_title(explanation));
}

}  // namespace knap
