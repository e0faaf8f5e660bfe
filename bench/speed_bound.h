// The speed over plain decoding that a profile allows on a known text: the best of the draft
// sources of `knapspec`, each with the fixed settings that were best in hindsight.
//
// - Plans: the maximum over plans and draft lengths g of E(alpha, g) / (g * rho + v(g + 1))
//   (docs/methods.md, "When speculation pays"). alpha is the share of the answer's rows on which a
//   replay of the plan agrees with the whole model (docs/methods.md, "Replay"); rho and v come from
//   the profile, v without what drafting has already computed. Without drafts the speed is 1.
// - Copies: drafting is free, but copies exist only after a match, so a mean acceptance would
//   overstate them. The answer is simulated instead (copy_bound.h), with the best plan for all
//   other tokens.
//
// A strategy that adapts its settings to the text can exceed this bound. One that first has to find
// out what pays stays below it.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "copy_bound.h"
#include "decode/knapspec/options.h"
#include "runtime/session_impl.h"
#include "search/cost/cost_model.h"
#include "search/replay.h"
#include "tools/explain/candidate_plans.h"

namespace knap::bench {

class SpeedBound {
  public:
    explicit SpeedBound(CostModel costs) : costs_(std::move(costs)) {}

    // The bound for the session's last answer, whose rows must be in the cache.
    double of(Session::Impl& session) const {
        const auto n_prompt = static_cast<int>(session.n_prompt);
        const int n_rows = session.cache.committed() - n_prompt;
        if (n_rows <= 0) {
            return 1;
        }
        const int n_context = n_prompt + n_rows / 2;
        const int max_length = session.max_verify_rows() - 1;
        const double plans =
            of_plans(session, n_rows, n_context, std::min(options_.scout.max_length, max_length));
        return copy_bound(session.history, session.n_prompt,
                          verify_ratio(n_context, std::min(options_.max_copy, max_length)), plans);
    }

  private:
    // [g]: v(g + 1).
    std::vector<double> verify_ratio(int n_context, int max_length) const {
        std::vector<double> ratios = costs_.verify_times_ms(n_context, max_length);
        for (double& ratio : ratios) {
            ratio /= costs_.plain_step_ms(n_context);
        }
        return ratios;
    }

    double of_plans(Session::Impl& session, int n_rows, int n_context, int max_length) const {
        const auto n_committed = static_cast<std::size_t>(session.cache.committed());
        const auto text = std::span(session.history).first(n_committed);
        const auto plans = find_candidate_plans(session, text, costs_, options_.scout);
        const TargetRows target =
            collect_target_rows(session.forward, session.cache, text, {.n_rows = n_rows});
        double best = 1;
        for (int i = 0; i < plans->pool.n_plans(); ++i) {
            const ModulePlan plan = canonical(plans->pool.at(i).plan, n_context);
            const RoundCost cost = costs_.round_cost(plan, n_context, max_length);
            const auto speed = [&](double acceptance) {
                return costs_.plain_step_ms(n_context) *
                       best_length({.rest = acceptance}, cost, {.first = 0, .last = max_length})
                           ->tokens_per_ms;
            };
            // No replay for a plan that falls short even with every draft accepted.
            if (!plan.is_full() && speed(1) > best) {
                const ReplayResult found = *replay(session.forward, session.cache, plan, target);
                best = std::max(best, speed(found.agreement()));
            }
        }
        return best;
    }

    CostModel costs_;
    KnapspecOptions options_ = read_knapspec_options({});
};

}  // namespace knap::bench
