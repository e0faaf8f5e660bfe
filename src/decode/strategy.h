// What to draft with next. A strategy answers that question before each round and hears afterwards
// what came of it; drafting, verifying and accepting are the round's (round.h), the same for all.
// One strategy serves one session: what it learns may last beyond a request, and requests that it
// does not see may come between two of its own.
#pragma once

#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "knap/types.h"

#include "decode/stop_rule.h"
#include "graph/module_plan.h"
#include "sampling/draft_tree.h"
#include "search/cost/cost_model.h"
#include "search/saved_plans.h"

namespace knap {

class AdapterHead;
class Forward;
class KvCache;
struct ModelConfig;

// What a strategy may use of its session; all of it outlives the strategy.
struct StrategyParts {
    const ModelConfig& config;
    Forward& forward;  // for passes of its own, into rows above the committed ones
    const KvCache& cache;
    const CostProfile& profile;  // its layer classes; its samples where this machine was measured
    std::span<const SavedPlan> plans{};  // found good in earlier runs
    int max_rows = 0;                    // of a verification, with the pending token
    AdapterHead* adapter = nullptr;      // null: the engine has none
};

struct RequestStart {
    std::span<const Token> prompt{};
    SamplingOptions sampling{};
};

struct RoundState {
    // Every token so far. The last one is pending: emitted, but not in the cache.
    std::span<const Token> history;
    // Most tokens that a draft may have: request, context and scratch allow no more.
    int n_room = 0;
    double elapsed_ms = 0;  // of the request so far, its prompt included
    int n_expected = 0;     // tokens that the answer may still have
};

// No draft: a step of plain decoding.
struct PlainStep {};

// Tokens that cost nothing to draft.
struct DraftTokens {
    const DraftTree* tree = nullptr;  // valid until the next propose()
};

// Computes logits from the streams at the end of a draft's last layer, in place of the model's own
// head.
class ExitHead {
  public:
    virtual ~ExitHead() = default;
    // [n_vocab, n_rows] after `hidden`, the streams [n_embd, n_rows] at the end of the plan's last
    // layer, of cache rows first_row, first_row + 1, ... Valid until the next call; empty:
    // cancelled.
    virtual std::span<const float> logits(std::span<const float> hidden, int first_row) = 0;
};

// How many candidates a position has when the first of them is more probable than `above`.
struct WidthStep {
    float above = 0;
    int width = 1;
};

// Drafting with a cheaper version of the model.
struct DraftWithPlan {
    const ModulePlan* plan = nullptr;  // valid until the next propose()
    StopRule stop{};
    int width = 1;  // candidates per position: the first goes on, the others are leaves beside it
    // Widths by the first candidate's confidence, the most confident first, none above `width`:
    // the first step that it exceeds counts, and `width` where it exceeds none.
    std::span<const WidthStep> width_steps{};
    ExitHead* head = nullptr;  // null: the model's own; else the plan is an early exit
    // What the draft might be: the plan checks these tokens in one pass and goes on where they end
    // or part from its own choices (methods 3.20). The draft is the same with or without them.
    std::span<const Token> guess{};
};

struct Proposal {
    std::variant<PlainStep, DraftTokens, DraftWithPlan> draft{};
    // Residual streams wanted of the verification, of every row: after how many modules, ascending.
    std::span<const int> captures{};
};

// What a round did. Everything is valid during observe() alone.
struct RoundOutcome {
    const DraftTree& tree;
    std::span<const int> path;       // accepted nodes
    std::span<const Token> emitted;  // the tokens of the path, then the whole model's own
    std::span<const float> gaps;     // Verdict::gaps
    std::span<const float> logits;   // whole model: [n_vocab, n_nodes + 1], the pending token first
    std::span<const std::span<const float>> captures;  // as asked for, [n_embd, n_nodes + 1] each
    // Of the drafts in their order, by the draft's own logits; empty where nobody asked for them.
    std::span<const float> confidences{};
    int n_guessed = 0;  // guesses that became drafts
    double draft_ms = 0;
    double verify_ms = 0;
};

class Strategy {
  public:
    virtual ~Strategy() = default;

    // A request begins; its prompt is all of its tokens.
    virtual void begin(const RequestStart& request);
    virtual Proposal propose(const RoundState& state) = 0;
    virtual void observe(const RoundOutcome& outcome);
    // Of the request at hand.
    virtual std::span<const Decision> decisions() const { return {}; }
};

// Every strategy by name, plain decoding first: the one list of them.
std::span<const StrategyInfo> list_strategies();
// Throws when the name is unknown or an option does not fit the strategy or the model.
std::unique_ptr<Strategy> make_strategy(const SpeculationOptions& options,
                                        const StrategyParts& parts);

}  // namespace knap
