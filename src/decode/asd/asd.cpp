#include "decode/asd/asd.h"

#include "base/text.h"
#include "decode/asd/removable_attentions.h"
#include "forward/plan_text.h"
#include "model/config.h"
#include "search/cosine.h"
#include "search/target_rows.h"

namespace knap {

namespace {

// c_l of every layer: the mean cosine of the streams before and after its attention.
std::vector<double> attention_cosines(const TargetRows& rows) {
    std::vector<double> cosines;
    for (std::size_t module = 0; module + 1 < rows.streams.size(); module += 2) {
        const double sum =
            sum_of_cosines(rows.streams[module], rows.streams[module + 1], rows.n_rows());
        cosines.push_back(sum / rows.n_rows());
    }
    return cosines;
}

ModulePlan plan_without(std::span<const int> attentions, int n_layers) {
    ModulePlan plan(n_layers);
    for (const int layer : attentions) {
        plan.set(layer, Module::attention, Level::skip);
    }
    return plan;
}

}  // namespace

AsdStrategy::AsdStrategy(const AsdOptions& options, const StrategyParts& parts)
    : options_(options),
      parts_(parts),
      threshold_(options.threshold),
      plan_(parts.config.n_layers) {}

void AsdStrategy::begin(const RequestStart& request) {
    n_prompt_ = request.prompt.size();
    round_ = 0;
    plan_ = ModulePlan(parts_.config.n_layers);
    decisions_.clear();
}

Proposal AsdStrategy::propose(const RoundState& state) {
    if (state.n_room <= 0) {
        return {.draft = PlainStep{}};
    }
    if (is_choice_due()) {
        choose(state.history);
    }
    ++round_;
    // A draft by the whole model would save nothing.
    if (plan_.is_full()) {
        return {.draft = PlainStep{}};
    }
    return {.draft = DraftWithPlan{.plan = &plan_, .stop = threshold_.stop_rule(state.n_room)}};
}

bool AsdStrategy::is_choice_due() const {
    return round_ == 0 || (options_.refresh_rounds > 0 && round_ % options_.refresh_rounds == 0);
}

void AsdStrategy::choose(std::span<const Token> history) {
    const TargetRows rows = collect_target_rows(parts_.forward, parts_.cache, history,
                                                {.n_rows = options_.n_rows, .streams = true});
    // No rows fit, or the pass was not computed: nothing changes.
    if (rows.tokens.empty()) {
        return;
    }
    const auto removed = removable_attentions(attention_cosines(rows), options_.rule);
    plan_ = plan_without(removed, parts_.config.n_layers);
    decisions_.push_back({
        .token = static_cast<int>(history.size() - n_prompt_),
        .source = removed.empty() ? "plain" : to_string(plan_),
        .plan = removed.empty() ? "" : to_string(plan_),
        .reason =
            concat(removed.size(), " of ", parts_.config.n_layers,
                   " attentions barely change the stream of the last ", rows.n_rows(), " rows"),
    });
}

void AsdStrategy::observe(const RoundOutcome& outcome) {
    if (outcome.is_forced) {
        return;  // nothing was drafted by confidence
    }
    threshold_.observe(static_cast<int>(outcome.path.size()), outcome.tree.max_depth());
}

std::unique_ptr<Strategy> build_asd(const SpeculationOptions& options, const StrategyParts& parts) {
    return std::make_unique<AsdStrategy>(read_asd_options(options, parts.max_rows), parts);
}

}  // namespace knap
