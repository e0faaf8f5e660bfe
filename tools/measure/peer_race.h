// libllama's part in a race: plain decoding of the same tokens, on the same threads. It runs with
// flash attention off and on; the setting that was faster on a prompt counts.
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

    // Computes a prompt, which the turns that follow go on from; those of a race that did not end
    // are forgotten.
    void read_prompt(std::span<const Token> prompt);
    // Feeds the tokens of an answer, one at a time, but for the last, which nothing follows.
    void take_turn(std::span<const Token> answer);
    // Says what plain decoding of ours took in the turn at hand.
    void end_turn(double plain_ms) { plain_ms_.push_back(plain_ms); }
    // Fills the row of the turns so far, and forgets them. `reference`: the answer that was fed.
    void end_race(BenchRow& row, const Result& reference);

    double prefill_ms() const { return faster().prefill_ms; }

  private:
    struct Setting {
        const char* name;
        std::unique_ptr<LlamaPeer> peer;
        double prefill_ms = 0;
        std::vector<double> times_ms{};  // of the turns so far

        double total_ms() const;
    };
    const Setting& faster() const;
    void forget_turns();

    std::array<Setting, 2> settings_;
    int n_prompt_ = 0;
    std::vector<double> plain_ms_;
};

}  // namespace knap
