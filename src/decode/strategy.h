// The interface of a strategy, and the list of strategies. Before each round a strategy decides
// what to draft with, and afterwards it receives the outcome. Drafting, verifying and accepting
// belong to the round (round.h) and are the same for all strategies. A strategy serves one session:
// what it learns may last beyond a request, and requests that it does not see may come between two
// of its own.
#pragma once

#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "knap/types.h"

#include "decode/forced_text.h"
#include "forward/module_plan.h"
#include "forward/pass.h"
#include "sampling/draft_tree.h"
#include "sampling/logit_rows.h"
#include "sampling/stop_rule.h"
#include "search/cost/cost_model.h"
#include "search/cost/profile.h"
#include "search/saved_plans.h"

namespace knap {

class AdapterHead;
class Forward;
class Sequence;
struct Learned;
struct ModelConfig;

// The parts of a session that a strategy may use. All of them outlive the strategy.
struct StrategyParts {
    const ModelConfig& config;
    Forward& forward;  // for its own passes, into scratch rows
    const Sequence& cache;
    const CostProfile& profile;          // layer classes; samples if this machine was measured
    std::span<const SavedPlan> plans{};  // saved by earlier runs
    int max_rows = 0;                    // of a verification, including the pending token
    bool trees_are_exact = false;        // a verified tree has the bits of plain decoding
    AdapterHead* adapter = nullptr;      // null: the engine has none
    const Learned* known = nullptr;      // what earlier runs learned; null: nothing
    Learned* notes = nullptr;            // for what later runs should know; null: nobody reads it
    MeasurePass measure{};               // times passes; empty: measure_pass()
};

struct RequestStart {
    std::span<const Token> prompt{};
    SamplingOptions sampling{};
    std::span<const std::vector<Token>> references{};  // texts that the answer may resemble
    std::span<const Token> prediction{};               // one that it is expected to be much like
    bool is_constrained = false;                       // by a grammar
};

struct RoundState {
    // Every token so far. The last one is pending: emitted, but not in the cache.
    std::span<const Token> history;
    // The longest draft that the request, the context and the scratch rows allow.
    int n_room = 0;
    double elapsed_ms = 0;               // of the request so far, including its prompt
    int n_expected = 0;                  // how many more tokens the answer may have
    Load load{};                         // other sessions
    const ForcedText* forced = nullptr;  // what the grammar forces next; null: nothing
};

// No draft: a step of plain decoding.
struct PlainStep {};

// Tokens that the strategy already has. Drafting them costs nothing.
struct DraftTokens {
    const DraftTree* tree = nullptr;  // valid until the next propose()
    bool are_forced = false;          // by the grammar: not the strategy's own draft
};

// Computes logits from the streams after a draft's last layer, in place of the model's own head.
class ExitHead {
  public:
    virtual ~ExitHead() = default;
    // Returns the logits [n_vocab, n_rows] for `hidden`, the streams [n_embd, n_rows] after the
    // plan's last layer, of cache rows first_row, first_row + 1, ... Valid until the next call;
    // empty when cancelled.
    virtual std::span<const float> logits(std::span<const float> hidden, int first_row) = 0;
};

// How many candidates a position has if the first is more probable than `above`.
struct WidthStep {
    float above = 0;
    int width = 1;
};

// Draft with a cheaper version of the model.
struct DraftWithPlan {
    const ModulePlan* plan = nullptr;  // valid until the next propose()
    StopRule stop{};
    int width = 1;  // candidates per position: the first continues the draft, the others are leaves
    // Widths by the first candidate's confidence, in descending order of `above`; none exceeds
    // `width`. The first step whose `above` the confidence exceeds applies, or else `width`.
    std::span<const WidthStep> width_steps{};
    ExitHead* head = nullptr;  // null: the model's own; otherwise the plan is an early exit
    // A guess of the draft. The plan checks these tokens in one pass and continues where they end
    // or differ from its own choices (docs/methods.md, "Cascade"). The draft is the same with or
    // without a guess.
    std::span<const Token> guess{};
};

struct Proposal {
    std::variant<PlainStep, DraftTokens, DraftWithPlan> draft{};
    // Residual streams to capture in the verification, for every row; each is given by the number
    // of modules before it, ascending.
    std::span<const int> captures{};
};

// The result of a round. It is valid only during observe().
struct RoundOutcome {
    const DraftTree& tree;
    std::span<const int> path;       // accepted nodes
    std::span<const Token> emitted;  // the tokens of the path, then the whole model's own
    std::span<const float> gaps;     // Verdict::gaps
    LogitRows logits;                // whole model: [n_nodes + 1], the pending token first
    std::span<const std::span<const float>> captures;  // as requested, [n_embd, n_nodes + 1] each
    // Confidences of the chain's tokens, by the draft's own logits; empty if nothing needs them.
    std::span<const float> confidences{};
    int n_guessed = 0;       // leading drafts that equal the guess
    bool is_forced = false;  // the draft came from the grammar in place of the strategy
    double draft_ms = 0;
    double verify_ms = 0;
    // The same without what other sessions cost: waiting for turns, and their share of the drafts'
    // passes. Their rows in the pass that verifies are in `verify_pass`.
    double own_draft_ms = 0;
    double own_verify_ms = 0;
    PassFacts verify_pass{};
    bool was_disturbed = false;  // the system took a core away during the verification
};

class Strategy {
  public:
    virtual ~Strategy() = default;

    // Called when a request begins. The prompt is the whole conversation so far.
    virtual void begin(const RequestStart& request);
    virtual Proposal propose(const RoundState& state) = 0;
    // Whether a round may draft what a grammar forces in place of what the strategy proposed. It
    // then keeps the proposal's captures and tells observe().
    virtual bool takes_forced_drafts() const { return true; }
    virtual void observe(const RoundOutcome& outcome);
    // Does a piece of work that later requests profit from, a few passes at most, while nobody
    // waits. `text` is that of the committed rows, which stay as they are. Returns whether more is
    // worth doing; false also when it was cancelled.
    virtual bool use_idle_time(std::span<const Token> text);
    // Decisions of the current request.
    virtual std::span<const Decision> decisions() const { return {}; }
};

// All strategies, plain decoding first.
std::span<const StrategyInfo> list_strategies();
// Throws when the name is unknown or an option does not fit the strategy or the model.
std::unique_ptr<Strategy> make_strategy(const SpeculationOptions& options,
                                        const StrategyParts& parts);

}  // namespace knap
