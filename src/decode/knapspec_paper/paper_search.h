// The published search for a draft plan: integer weights, the knapsack, the agreement of the head's
// choices, and the choice of the plan with the most tokens per time (docs/methods.md, "Integer
// weights" to "Choice and fallback").
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/knapspec_paper/options.h"
#include "search/knapsack.h"
#include "search/module_weights.h"
#include "search/target_rows.h"

namespace knap {

// The knapsack problem at a context with these times: K, B and the forced modules.
KnapsackProblem paper_problem(const PaperOptions& options, const KindTimes& times, int n_layers);

// The input of a search: the r recent tokens, as states of the evaluator.
struct PaperTask {
    int n_layers = 0;
    KindTimes times{};                      // ta, tm at the current context
    std::span<const Token> target_choices;  // [r] argmax of the whole model's logits
    KnapsackEvaluator& evaluator;
    // Returns [r] the head's argmax on the evaluator's state `state`; empty when cancelled.
    std::function<std::vector<Token>(int state)> choices_of_state{};
};

struct PaperChoice {
    ModulePlan plan;
    int draft_length = 0;   // gamma*
    double acceptance = 0;  // alpha: share of rows on which the choices agree
    double speedup = 0;     // predicted tokens per time over those of plain decoding
    int n_candidates = 0;   // how many there were to choose from
};

// Returns nullopt if no candidate survived, or when cancelled.
std::optional<PaperChoice> search_as_published(const PaperOptions& options, const PaperTask& task);

struct PaperSearchResult {
    bool is_cancelled = false;
    std::optional<PaperChoice> choice{};  // none: no candidate survived
    double plain_step_ms = 0;             // by the fitted cost model
};

// The search itself. The strategy decides when to search.
class PaperSearch {
  public:
    virtual ~PaperSearch() = default;

    // The most rows that find() can take.
    virtual int max_rows() const = 0;
    // Computes the last rows of the committed text again. The result has no tokens when cancelled.
    virtual TargetRows last_rows(std::span<const Token> text, int n_rows) = 0;
    // Returns the best plan on `rows`, the most recent committed rows.
    virtual PaperSearchResult find(const TargetRows& rows) = 0;
};

}  // namespace knap
