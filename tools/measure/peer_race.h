// libllama as a contender: plain decoding of the same tokens on the same threads. It runs with
// flash attention off and on; the faster setting of each prompt counts.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "knap/knap.h"

#include "tools/measure/report/bench_report.h"
#include "tools/peer/llama_peer.h"

namespace knap {

class PeerRace {
  public:
    // The engine must outlive it.
    explicit PeerRace(Engine& engine);

    // Computes the prompt that the next turns start from. Discards the turns of an unfinished race.
    void read_prompt(std::span<const Token> prompt);
    // Feeds the tokens of an answer one at a time, except for the last, which needs no pass.
    void take_turn(std::span<const Token> answer);
    // Ends the current turn, in which our plain decoding took `plain_ms`.
    void end_turn(double plain_ms) { plain_ms_.push_back(plain_ms); }
    // Fills the row from the turns so far and discards them. `reference`: the answer that was fed.
    void end_race(BenchRow& row, const Result& reference);

    double prefill_ms() const { return faster().prefill_ms; }

  private:
    struct Setting {
        const char* name;
        std::unique_ptr<LlamaPeer> peer;
        double prefill_ms = 0;
        std::vector<double> times_ms{};  // one per turn so far

        double total_ms() const;
    };
    const Setting& faster() const;
    void forget_turns();

    std::array<Setting, 2> settings_;
    int n_prompt_ = 0;
    std::vector<double> plain_ms_;
};

}  // namespace knap
