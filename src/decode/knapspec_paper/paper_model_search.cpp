#include "decode/knapspec_paper/paper_model_search.h"

#include <algorithm>
#include <array>
#include <vector>

#include "forward/forward.h"
#include "kv/sequence.h"
#include "model/config.h"
#include "search/cost/profile.h"
#include "search/similarity.h"

namespace knap {

namespace {

constexpr std::size_t kPassesPerProbe = 3;

// Returns the median of a few passes after a warm-up pass, or nullopt when cancelled.
std::optional<CostSample> measure(Forward& forward, const Probe& probe) {
    std::array<double, 1 + kPassesPerProbe> ms{};
    for (double& pass_ms : ms) {
        const auto measured = measure_pass(forward, probe);
        if (!measured) {
            return std::nullopt;
        }
        pass_ms = measured->ms;
    }
    const auto warm = std::span(ms).subspan<1>();
    std::ranges::sort(warm);
    return CostSample{
        .plan = probe.plan,
        .n_context = probe.n_context,
        .n_rows = probe.n_rows,
        .has_head = probe.has_head,
        .ms = warm[kPassesPerProbe / 2],
        .spread_ms = (warm.back() - warm.front()) / 2,
        .n_measured = static_cast<int>(kPassesPerProbe),
    };
}

}  // namespace

int PaperModelSearch::max_rows() const {
    const int first_row = parts_.cache.committed();
    return std::min(parts_.forward.max_rows(first_row), parts_.cache.capacity() - first_row);
}

TargetRows PaperModelSearch::last_rows(std::span<const Token> text, int n_rows) {
    return collect_target_rows(parts_.forward, parts_.cache, text,
                               {.n_rows = n_rows, .streams = true});
}

PaperSearchResult PaperModelSearch::find(const TargetRows& rows) {
    if (!learn_costs()) {
        return {.is_cancelled = true};
    }
    const int n_context = parts_.cache.committed();
    const KindTimes times = costs_->kind_times(n_context);
    const KnapsackProblem problem = paper_problem(options_, times, parts_.config.n_layers);
    SimilarityEvaluator evaluator(parts_.forward, parts_.cache, rows, max_rows(),
                                  most_states(problem, options_.knapsack.max_cells));
    bool is_cancelled = false;
    const auto choices_of_state = [&](int state) {
        auto choices = evaluator.choices(state);
        is_cancelled |= choices.empty();
        return choices;
    };
    const auto choice = search_as_published(options_, {.n_layers = parts_.config.n_layers,
                                                       .times = times,
                                                       .target_choices = rows.choices,
                                                       .evaluator = evaluator,
                                                       .choices_of_state = choices_of_state});
    return {
        .is_cancelled = is_cancelled || evaluator.is_cancelled(),
        .choice = choice,
        .plain_step_ms = costs_->plain_step_ms(n_context),
    };
}

// Uses the profile of this machine; if there is none, measures a few passes. Returns false when
// cancelled.
bool PaperModelSearch::learn_costs() {
    if (costs_) {
        return true;
    }
    CostProfile profile = parts_.profile;
    if (!can_fit(profile)) {
        const int n_context = parts_.cache.committed();
        const int n_rows = std::min(parts_.max_rows, max_rows());
        for (const Probe& probe : first_probes(profile.layer_classes, n_context, n_rows)) {
            const auto sample = measure(parts_.forward, probe);
            if (!sample) {
                return false;
            }
            profile.samples.push_back(*sample);
        }
    }
    costs_.emplace(profile);
    return true;
}

}  // namespace knap
