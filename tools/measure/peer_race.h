// libllama as contenders, on the same prompts and threads: plain decoding, and llama.cpp's own ways
// to draft. Each runs with flash attention off and on; its faster setting on each prompt counts.
//
// Plain decoding is fed the tokens of our answer. Peers that draft write their own greedy text,
// which is compared with ours and with libllama's plain text; when sampling, our tokens stand for
// their draws. What they learn lasts from prompt to prompt, for each turn apart, like our
// strategies'.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "knap/knap.h"

#include "tools/measure/race_options.h"
#include "tools/measure/report/bench_report.h"
#include "tools/peer/llama_answer.h"
#include "tools/peer/llama_drafts.h"
#include "tools/peer/llama_peer.h"

namespace knap {

class PeerRace {
  public:
    // The engine must outlive it. The peers are those of `options`.
    PeerRace(Engine& engine, const RaceOptions& options, std::function<bool()> is_cancelled);

    // Computes the prompt that the next turns start from. Discards the turns of an unfinished race.
    void read_prompt(std::span<const Token> prompt);
    // `reference`: our answer to that prompt, which must outlive the races. `ignores_eos`: no
    // end-of-generation token was allowed in it. Returns false when cancelled.
    bool begin(const Result& reference, bool ignores_eos);

    // Number `peer` of the options answers. Returns false when cancelled.
    bool answer(std::size_t peer, std::size_t rule);
    // Ends the current turn, in which all peers answered and our plain decoding took `plain_ms`.
    void end_turn(double plain_ms) { plain_ms_.push_back(plain_ms); }

    double prefill_ms(std::size_t peer) const;
    // Fills the row from the turns so far.
    void fill(std::size_t peer, BenchRow& row) const;
    void forget_turns();
    void forget_drafts();  // and what was learned with them

  private:
    static constexpr std::size_t kSettings = 2;

    struct Setting {
        const char* name;
        std::unique_ptr<LlamaPeer> peer;
        double prefill_ms = 0;
        std::vector<float> prompt_logits{};  // [n_vocab] of the prompt's last row
        // Its own plain text, if there is something to compare with it, and where that first
        // differs from the reference.
        std::vector<Token> plain_text{};
        std::optional<BenchDifference> plain_difference{};
    };
    // The turns of a peer with a setting on the current prompt.
    struct Turns {
        std::vector<LlamaAnswer> answers{};
        bool is_libllamas_text = true;
        std::optional<BenchDifference> first_difference{};

        double total_ms() const;
    };
    // By turn; made on first use. Empty for plain decoding.
    using TurnDrafts = std::vector<std::unique_ptr<LlamaDrafts>>;

    bool writes_own_texts() const;  // some peer drafts, and decoding is greedy
    bool writes_own_text(std::size_t peer) const;
    LlamaDrafts* drafts_of_turn(std::size_t peer, std::size_t rule, std::size_t setting);
    std::optional<LlamaAnswer> write(Setting& setting,
                                     LlamaDrafts* drafts,
                                     const ChooseToken& choose);
    // Chooses the best tokens.
    std::optional<LlamaAnswer> write_own(Setting& setting,
                                         LlamaDrafts* drafts,
                                         std::optional<BenchDifference>& difference);
    Token best_token(std::span<const float> logits) const;
    std::size_t faster_setting(std::size_t peer) const;

    std::vector<std::string> names_;
    bool is_greedy_;
    std::function<bool()> is_cancelled_;
    std::vector<Token> end_tokens_;
    std::array<Setting, kSettings> settings_;
    std::vector<std::vector<std::array<TurnDrafts, kSettings>>> drafts_;  // [rule][peer]
    // State of the current prompt:
    std::vector<Token> prompt_;
    const Result* reference_ = nullptr;
    bool ignores_eos_ = false;
    std::vector<std::array<Turns, kSettings>> turns_;  // [peer]
    std::vector<double> plain_ms_;
};

}  // namespace knap
