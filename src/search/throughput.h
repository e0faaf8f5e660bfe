// Predicts the speed of speculation: the expected tokens of a round over its time, and the draft
// length and candidate that maximise it. The paper's TPT (docs/methods.md, "Throughput formula") is
// the case in which a verification costs as much as one token and a draft step costs only its
// modules.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "forward/module_plan.h"
#include "search/module_weights.h"

namespace knap {

// The probability that a draft is accepted if all drafts before it were (alpha). The paper uses one
// number for all: {.rest = alpha}.
struct AcceptanceByDepth {
    std::vector<double> first{};  // [i] for draft i of a round, from 0
    double rest = 0;              // for all later drafts

    double at(int draft) const;
};

// E(alpha, g) = 1 + a0 + a0 * a1 + ...: the accepted drafts and the token that always follows. For
// one alpha it is (1 - alpha^(g + 1)) / (1 - alpha), or g + 1 if alpha is 1.
double expected_tokens(const AcceptanceByDepth& acceptance, int draft_length);
// The variance of the same if `reached[i]` is the probability that draft i, or any at its depth, is
// accepted.
double variance_of_tokens(std::span<const double> reached);
double variance_of_tokens(const AcceptanceByDepth& acceptance, int draft_length);

// The time of a round by its draft length (docs/methods.md, "Measured costs").
struct RoundCost {
    double draft_step_ms = 0;         // modules, head and the fixed cost of a pass
    std::vector<double> verify_ms{};  // [g] verifies the pending token and g drafts, beside others
    double n_other_tokens = 0;        // that other sessions get from the verification

    // The longest draft that verify_ms covers.
    int max_length() const { return static_cast<int>(verify_ms.size()) - 1; }
    double round_ms(int draft_length) const;
};

// Verification times that do not depend on the number of rows.
std::vector<double> flat_verify(double ms, int max_length);

// The paper's price of a plan (docs/methods.md, "Throughput formula"): ta * (nA * g + L) + tm * (nM
// * g + L), where nA and nM are the attentions and MLPs that it runs.
RoundCost paper_round_cost(const ModulePlan& plan, const KindTimes& times, int max_length);

double tokens_per_ms(const AcceptanceByDepth& acceptance, const RoundCost& cost, int draft_length);

// Draft lengths to choose from. Lengths that a RoundCost does not cover are ignored.
struct LengthRange {
    int first = 0;  // 0: do not speculate
    int last = 0;

    bool operator==(const LengthRange&) const = default;
};
// The ranges of the paper and of its published code (docs/methods.md, "Where the paper and its code
// differ": draft lengths rated).
inline constexpr LengthRange kPaperLengths{.first = 1, .last = 10};
inline constexpr LengthRange kOfficialLengths{.first = 0, .last = 17};

struct BestLength {
    int draft_length = 0;
    double tokens_per_ms = 0;
};

// The best draft length; the shortest of equals. Nullopt if the cost covers no length of the range.
std::optional<BestLength> best_length(const AcceptanceByDepth& acceptance,
                                      const RoundCost& cost,
                                      const LengthRange& lengths);

struct RatedPlan {
    AcceptanceByDepth acceptance{};
    RoundCost cost{};
};

struct ChoiceRule {
    LengthRange lengths = kOfficialLengths;
    // The published code ignores the first candidate, normally the one that skips nothing, unless
    // it is the only one (docs/methods.md, "Where the paper and its code differ": candidate pool).
    bool passes_over_first = true;
};

struct PlanChoice {
    int candidate = 0;
    BestLength best{};
};

// The candidate with the highest throughput; the first of equals. Nullopt if no candidate has one.
std::optional<PlanChoice> choose_plan(std::span<const RatedPlan> candidates,
                                      const ChoiceRule& rule);

// A prior belief about an acceptance rate, in drafts (docs/methods.md, "Shrinkage").
struct AcceptancePrior {
    double accepted = 0;  // a0
    double rejected = 0;  // b0
};
// A belief in `rate` with the weight of `n_drafts` measured drafts.
AcceptancePrior prior_of(double rate, double n_drafts);

// (matches + a0) / (r + a0 + b0): the fewer rows, the closer to the prior. 0 without rows and
// prior.
double shrunk_acceptance(int n_matches, int n_rows, const AcceptancePrior& prior);

}  // namespace knap
