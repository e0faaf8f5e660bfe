// Serves the prompts of a benchmark on several sessions at once: every contender answers all of
// them, and each session takes the next prompt when it is done. In each turn plain decoding runs
// before and after the others, as a control. Every text is compared with that of plain decoding of
// the same prompt alone.
//
// The engine loads its model again before each of these loads, so that none finds the rows of
// another in the cache. Strategies last as long as a load.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "knap/knap.h"

#include "tools/measure/load/peer_load.h"
#include "tools/measure/parallel_rows.h"
#include "tools/measure/race_options.h"

namespace knap {

class Backend;

std::size_t n_loads(const RaceOptions& options);  // of a race

class ParallelRace {
  public:
    // As many sessions as the engine's n_parallel. `observer.on_progress` gets the number of loads
    // done, with the part of the current one, on the thread of a session. The engine must outlive
    // the race and have no sessions.
    ParallelRace(Engine& engine, RaceOptions options, RaceObserver observer);
    ~ParallelRace();

    // Prompts whose answer is too short to be timed are skipped. Returns nullopt when cancelled.
    // Throws knap::Error when a text that must equal plain decoding's does not.
    std::optional<ParallelOutcome> measure(std::span<const BenchPrompt> prompts);

  private:
    // These return false or nullopt when cancelled.
    bool answer_alone(std::span<const BenchPrompt> prompts, ParallelOutcome& outcome);
    std::optional<ParallelTurns> race(const RaceRule& rule);
    bool take_turn(ParallelTurns& race);
    bool serve_side(const Contender& side, ServedTurns& turns);
    std::optional<std::vector<ServedRequest>> serve_load(const SpeculationOptions& how,
                                                         std::span<const BenchPrompt> prompts,
                                                         int n_sessions);

    void choose_peer();
    std::vector<LlamaRequest> peer_requests() const;
    bool is_cancelled() const;
    void finish_load();

    Engine& engine_;
    RaceOptions options_;
    RaceObserver observer_;
    int n_parallel_;
    // libllama has threads of its own, because the engine's end with each load.
    std::unique_ptr<Backend> backend_;
    std::optional<LlamaBatch> peer_weights_;
    std::optional<PeerLoad> peer_;
    // State of measure():
    std::vector<BenchPrompt> prompts_;  // without those that are skipped
    std::vector<Result> references_;    // plain decoding's answers alone, by prompt
    std::size_t n_finished_ = 0;        // loads
};

}  // namespace knap
