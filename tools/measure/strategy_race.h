// Strategies in turn on a prompt: what disturbs the machine for a while disturbs all of them. The
// prompt is computed once, every answer starts from its rows, and plain decoding runs before and
// after the others of a turn, as its own control.
//
// What a strategy learns lasts from prompt to prompt, as in a session. Every turn of a contender
// has its own strategy, which goes on from that turn of the prompt before: no turn profits from
// another turn on the same text.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "knap/knap.h"

#include "runtime/session_impl.h"
#include "tools/measure/contenders.h"
#include "tools/measure/measure_prompts.h"
#include "tools/measure/peer_race.h"
#include "tools/measure/report/bench_report.h"

namespace knap {

// A rule of acceptance, by its name on the command line. Greedy decoding has one rule.
struct RaceRule {
    std::string name = kGreedy;
    AcceptanceRule rule = AcceptanceRule::shared_noise;
};

struct RaceOptions {
    std::vector<Contender> contenders;  // without plain decoding, which always takes part
    std::vector<RaceRule> rules{RaceRule{}};
    SamplingOptions sampling = SamplingOptions();
    double assume_acceptance = -1;  // below 0: off
    int n_predict = 128;            // tokens of an answer, 2 or more
    int n_turns = 3;
    bool has_peer = false;  // libllama takes part as well
    // Every prompt starts with new strategies.
    bool fresh_strategies = false;
};

// Each member may be empty. Called on the caller's thread; `is_cancelled` from compute threads too.
struct RaceObserver {
    std::function<void(double fraction)> on_progress{};  // of the prompt at hand
    std::function<bool()> is_cancelled{};
};

class StrategyRace {
  public:
    // The engine must outlive it.
    StrategyRace(Engine& engine, RaceOptions options, RaceObserver observer);

    // Rows of plain decoding, every contender and libllama, for each rule; none where an answer is
    // too short to be measured. Nullopt: cancelled.
    // Throws knap::Error where a strategy's text must be plain decoding's and is not.
    std::optional<PromptOutcome> measure(const BenchPrompt& prompt);

    // After measure(), with plain decoding's answer as the latest: what the rows of a prompt and
    // its answer would have allowed can be asked of it.
    Session::Impl& session() { return session_; }

  private:
    // The strategies of a contender with a rule, by turn; made when they are first used.
    using TurnStrategies = std::vector<std::unique_ptr<Strategy>>;

    // A contender's turns on a prompt.
    struct Side {
        Contender contender;
        TurnStrategies* strategies = nullptr;
        std::vector<Result> results{};
        std::vector<BenchTurn> turns{};
        std::optional<BenchDifference> first_difference{};
    };

    // False or nullopt: cancelled.
    bool begin(const BenchPrompt& prompt);
    bool touch_weights(const BenchPrompt& prompt);
    bool race(const BenchPrompt& prompt, std::size_t rule, PromptOutcome& outcome);
    bool warm_up(const BenchPrompt& prompt, std::span<const Side> sides);
    bool take_turn(const BenchPrompt& prompt, Side& plain, std::span<Side> sides);
    bool answer(const BenchPrompt& prompt, Side& side);
    std::optional<Result> generate(const BenchPrompt& prompt,
                                   const SpeculationOptions& how,
                                   Strategy& strategy,
                                   int n_predict);
    // With a new strategy that nobody keeps.
    std::optional<Result> generate_afresh(const BenchPrompt& prompt,
                                          const SpeculationOptions& how,
                                          int n_predict);
    Strategy& strategy_of_turn(Side& side);

    std::vector<Side> sides_of(std::size_t rule);
    void forget_strategies();
    // Empty where every answer can be measured.
    static std::string why_unmeasurable(const RaceRule& rule, std::span<const Side> sides);
    void compare(const BenchPrompt& prompt, Side& side) const;
    double prefill_ms_of(const Contender& contender) const;
    void add_rows(const BenchPrompt& prompt,
                  const RaceRule& rule,
                  std::span<Side> sides,
                  std::vector<BenchRow>& rows);
    void count_answer();

    RaceOptions options_;
    RaceObserver observer_;
    Session::Impl session_;
    std::vector<std::vector<TurnStrategies>> strategies_;  // [rule][side], plain decoding first
    std::optional<PeerRace> peer_;
    bool is_warm_ = false;
    // Of the prompt at hand:
    Result reference_;  // plain decoding's answer
    double prefill_ms_ = 0;
    double adapter_ms_ = 0;  // an adapter's rows of the prompt
    int n_answers_ = 0;      // timed so far
};

}  // namespace knap
