// What to draft with next. A strategy answers that question before each round and hears afterwards
// what came of it; drafting, verifying and accepting are the round's (round.h), the same for all.
// One strategy serves one session: what it learns may last beyond a request.
#pragma once

#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "knap/types.h"

#include "decode/stop_rule.h"
#include "graph/module_plan.h"
#include "sampling/draft_tree.h"

namespace knap {

struct ModelConfig;

struct RoundState {
    // Every token so far. The last one is pending: emitted, but not in the cache.
    std::span<const Token> history;
    // Most tokens that a draft may have: request, context and scratch allow no more.
    int n_room = 0;
};

// No draft: a step of plain decoding.
struct PlainStep {};

// Tokens that cost nothing to draft.
struct DraftTokens {
    const DraftTree* tree = nullptr;  // valid until the next propose()
};

// Drafting with a cheaper version of the model.
struct DraftWithPlan {
    const ModulePlan* plan = nullptr;  // valid until the next propose()
    StopRule stop{};
    int width = 1;  // candidates per position: the first goes on, the others are leaves beside it
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
    double draft_ms = 0;
    double verify_ms = 0;
};

class Strategy {
  public:
    virtual ~Strategy() = default;

    // A request begins; `prompt` is all of its tokens.
    virtual void begin(std::span<const Token> prompt);
    virtual Proposal propose(const RoundState& state) = 0;
    virtual void observe(const RoundOutcome& outcome);
};

// Every strategy by name, plain decoding first: the one list of them.
std::span<const StrategyInfo> list_strategies();
// Throws when the name is unknown or an option does not fit the strategy or the model.
std::unique_ptr<Strategy> make_strategy(const SpeculationOptions& options,
                                        const ModelConfig& config);

}  // namespace knap
