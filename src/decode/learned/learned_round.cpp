#include "decode/learned/learned_round.h"

#include <algorithm>
#include <string>
#include <utility>

#include "decode/knapspec/plan_outcome.h"
#include "forward/plan_text.h"

namespace knap {

namespace {

constexpr std::string_view kLookup = "lookup";

bool has_default_rule(const GenerateOptions& request) {
    const SpeculationOptions& how = request.speculation;
    return how.assume_acceptance < 0 &&
           (request.sampling.temperature <= 0 || how.acceptance == AcceptanceRule::shared_noise);
}

// Empty: nothing is learned from it.
std::string way_of(const Proposal& proposal, std::string_view strategy) {
    if (const auto* given = std::get_if<DraftTokens>(&proposal.draft)) {
        return given->are_forced ? "" : std::string(strategy == kLookup ? kLookup : "copies");
    }
    const auto* how = std::get_if<DraftWithPlan>(&proposal.draft);
    return how == nullptr || how->head != nullptr ? "" : to_string(*how->plan);
}

}  // namespace

void learn_round(const Proposal& proposal,
                 const RoundOutcome& outcome,
                 const GenerateOptions& request,
                 int n_context,
                 Learned& learned) {
    if (outcome.tree.is_empty() || !has_default_rule(request)) {
        return;
    }
    std::string name = way_of(proposal, request.speculation.strategy);
    if (name.empty() || name.size() > Learned::kLongestName) {
        return;
    }
    PlanOutcome drafts{.n_drafted = outcome.tree.max_depth(),
                       .n_accepted = static_cast<int>(outcome.path.size())};
    if (std::holds_alternative<DraftWithPlan>(proposal.draft)) {
        drafts = outcome_of_plan(outcome.tree, outcome.path);
    }
    // Drafts after the first rejected one were never judged.
    const int n_judged = std::min(drafts.n_drafted, drafts.n_accepted + 1);
    learned.add_drafts(
        {.name = std::move(name),
         .bucket = context_bucket(n_context),
         .is_sampled = request.sampling.temperature > 0},
        {.right = static_cast<double>(drafts.n_accepted), .all = static_cast<double>(n_judged)});
}

}  // namespace knap
