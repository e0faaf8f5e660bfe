// The published search for a draft plan (methods 3.5 to 3.10): integer weights, the knapsack,
// agreement of the head's choices, and the plan of the most tokens per time.
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

// K, B, forced modules: what is put into the knapsack at a context with these times.
KnapsackProblem paper_problem(const PaperOptions& options, const KindTimes& times, int n_layers);

// What is searched: the r recent tokens of a model, by the evaluator's states.
struct PaperTask {
    int n_layers = 0;
    KindTimes times{};                      // ta, tm at the present context
    std::span<const Token> target_choices;  // [r] argmax of the whole model's logits
    KnapsackEvaluator& evaluator;
    // [r] argmax of the head on the evaluator's state `state`. Empty: cancelled.
    std::function<std::vector<Token>(int state)> choices_of_state{};
};

struct PaperChoice {
    ModulePlan plan;
    int draft_length = 0;   // gamma*
    double acceptance = 0;  // alpha: share of rows on which the choices agree
    double speedup = 0;     // predicted tokens per time over those of plain decoding
    int n_candidates = 0;   // that it was chosen from
};

// None where no candidate survived, or cancelled.
std::optional<PaperChoice> search_as_published(const PaperOptions& options, const PaperTask& task);

struct PaperSearchResult {
    bool is_cancelled = false;
    std::optional<PaperChoice> choice{};  // none: no candidate survived
    double plain_step_ms = 0;             // of the whole model over one row, as measured
};

// The search, apart from when it is made.
class PaperSearch {
  public:
    virtual ~PaperSearch() = default;

    // Most rows that find() can take.
    virtual int max_rows() const = 0;
    // The last rows of the committed text, computed anew; without tokens: cancelled.
    virtual TargetRows last_rows(std::span<const Token> text, int n_rows) = 0;
    // The best plan on the most recent committed rows.
    virtual PaperSearchResult find(const TargetRows& rows) = 0;
};

}  // namespace knap
