// Runs contenders in turn on a prompt, so that a disturbance of the machine affects all of them.
// The prompt is computed once and every answer starts from its rows. In each turn plain decoding
// runs before and after the others, as a control.
//
// Strategies keep what they learn from prompt to prompt, as in a session. Each turn of a contender
// has its own strategy object, which continues from the same turn of the previous prompt: no turn
// benefits from another turn on the same text.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "knap/knap.h"

#include "runtime/session_impl.h"
#include "tools/measure/measure_prompts.h"
#include "tools/measure/peer_race.h"
#include "tools/measure/race_options.h"
#include "tools/measure/report/bench_report.h"

namespace knap {

class StrategyRace {
  public:
    // The engine must outlive it.
    StrategyRace(Engine& engine, RaceOptions options, RaceObserver observer);

    // Rows of plain decoding, every contender and every peer, for each rule; none when an answer is
    // too short to be timed. Returns nullopt when cancelled. Throws knap::Error when a text that
    // must equal plain decoding's does not.
    std::optional<PromptOutcome> measure(const BenchPrompt& prompt);

    // After measure() its latest answer is plain decoding's, so that a caller can examine the cache
    // rows of the prompt and that answer.
    Session::Impl& session() { return session_; }

  private:
    // The strategies of a contender with one rule, by turn; made on first use.
    using TurnStrategies = std::vector<std::unique_ptr<Strategy>>;

    // A contender's turns on a prompt.
    struct Side {
        Contender contender;
        TurnStrategies* strategies = nullptr;
        std::vector<Result> results{};
        std::vector<BenchTurn> turns{};
        std::optional<BenchDifference> first_difference{};
    };

    // These return false or nullopt when cancelled.
    bool begin(const BenchPrompt& prompt);
    bool touch_weights(const BenchPrompt& prompt);
    bool race(const BenchPrompt& prompt, std::size_t rule, PromptOutcome& outcome);
    bool warm_up(const BenchPrompt& prompt, std::span<const Side> sides);
    bool take_turn(const BenchPrompt& prompt, std::size_t rule, Side& plain, std::span<Side> sides);
    bool answer(const BenchPrompt& prompt, Side& side);
    std::optional<Result> generate(const BenchPrompt& prompt,
                                   const SpeculationOptions& how,
                                   Strategy& strategy,
                                   int n_predict);
    // Uses a new strategy that is discarded afterwards.
    std::optional<Result> generate_afresh(const BenchPrompt& prompt,
                                          const SpeculationOptions& how,
                                          int n_predict);
    Strategy& strategy_of_turn(Side& side);

    std::vector<Side> sides_of(std::size_t rule);
    void forget_strategies();
    // Empty when every answer can be timed.
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
    std::optional<PeerRace> peers_;
    bool is_warm_ = false;
    // State of the current prompt:
    Result reference_;  // plain decoding's answer
    double prefill_ms_ = 0;
    double adapter_ms_ = 0;  // time of the adapter's rows of the prompt
    int n_answers_ = 0;      // timed so far
};

}  // namespace knap
