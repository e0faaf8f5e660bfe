// Predicted speed of speculation: the tokens that a round is expected to emit over the time that it
// takes, and the draft length and the candidate for which that is highest. The paper's TPT (methods
// 3.10) is the case of a verification that costs as much as one token and of drafts that pay for
// their modules alone.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/module_plan.h"
#include "search/module_weights.h"

namespace knap {

// The probability that a draft is accepted when all drafts before it were (alpha). The paper has
// one number for all: {.rest = alpha}.
struct AcceptanceByDepth {
    std::vector<double> first{};  // [i] of draft i of a round, from 0
    double rest = 0;              // of those behind

    double at(int draft) const;
};

// E(alpha, g) = 1 + a0 + a0 * a1 + ...: drafts that are kept, and the one token that always
// follows. For one alpha it is (1 - alpha^(g + 1)) / (1 - alpha), and g + 1 where alpha is 1.
double expected_tokens(const AcceptanceByDepth& acceptance, int draft_length);

// The time of a round by its draft length (methods 3.15, O1).
struct RoundCost {
    double draft_step_ms = 0;         // a draft: modules, head and the fixed cost of a pass
    std::vector<double> verify_ms{};  // [g] verifying the pending token and g drafts

    // The draft lengths that verify_ms knows.
    int max_length() const { return static_cast<int>(verify_ms.size()) - 1; }
    double round_ms(int draft_length) const;
};

// A verification whose time does not depend on the rows.
std::vector<double> flat_verify(double ms, int max_length);

// What the paper prices a plan at (W1, W2): ta * (nA * g + L) + tm * (nM * g + L), with nA and nM
// the attentions and MLPs that it runs.
RoundCost paper_round_cost(const ModulePlan& plan, const KindTimes& times, int max_length);

double tokens_per_ms(const AcceptanceByDepth& acceptance, const RoundCost& cost, int draft_length);

// Draft lengths to choose from; those that a RoundCost does not know are left out.
struct LengthRange {
    int first = 0;  // 0: not to speculate
    int last = 0;

    bool operator==(const LengthRange&) const = default;
};
// D1: the grids of the paper and of its published code.
inline constexpr LengthRange kPaperLengths{.first = 1, .last = 10};
inline constexpr LengthRange kOfficialLengths{.first = 0, .last = 17};

struct BestLength {
    int draft_length = 0;
    double tokens_per_ms = 0;
};

// The smallest of the best lengths; none where the range holds no length that the cost knows.
std::optional<BestLength> best_length(const AcceptanceByDepth& acceptance,
                                      const RoundCost& cost,
                                      const LengthRange& lengths);

struct RatedPlan {
    AcceptanceByDepth acceptance{};
    RoundCost cost{};
};

struct ChoiceRule {
    LengthRange lengths = kOfficialLengths;
    // D2: the published code leaves out the first candidate, normally the one that skips nothing.
    // Where it is the only one it is chosen all the same.
    bool passes_over_first = true;
};

struct PlanChoice {
    int candidate = 0;
    BestLength best{};
};

// The first candidate of those with the highest throughput; none where there is no candidate.
std::optional<PlanChoice> choose_plan(std::span<const RatedPlan> candidates,
                                      const ChoiceRule& rule);

// What is believed of an acceptance before it is measured, in drafts (methods 3.15, O4).
struct AcceptancePrior {
    double accepted = 0;  // a0
    double rejected = 0;  // b0
};
// A belief in `rate` that weighs as much as `n_drafts` measured ones.
AcceptancePrior prior_of(double rate, double n_drafts);

// (matches + a0) / (r + a0 + b0): the fewer rows, the closer to the prior. Nothing measured and
// nothing believed is 0.
double shrunk_acceptance(int n_matches, int n_rows, const AcceptancePrior& prior);

}  // namespace knap
