// Plain decoding and speculative rounds on one model, below the public face: what the lossless
// tests compare.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "decode/round.h"
#include "sampling/sampler.h"
#include "support/loaded_model.h"

namespace knap::test {

struct Decoded {
    std::vector<Token> tokens;     // generated
    std::vector<float> gaps;       // plain decoding: by how much each token was preferred
    std::vector<std::byte> cache;  // committed rows: all tokens but the last
    int n_drafted = 0;             // nodes
    int n_accepted = 0;
    int n_guessed = 0;   // guesses that became drafts
    int n_gathered = 0;  // rounds whose path was not the beginning of the tree
};

struct DecodeCase {
    std::vector<Token> prompt;
    int n_tokens = 0;
    SamplingOptions sampling{};
    AcceptanceRule rule = AcceptanceRule::shared_noise;
    int max_rows = 256;
};

// Says what to draft, given all tokens so far and the most tokens that a draft may have.
using Propose = std::function<Proposal(std::span<const Token> history, int n_room)>;

class RoundRig {
  public:
    explicit RoundRig(LoadedModel& model, const ForwardOptions& options = {});

    Decoded plain(const DecodeCase& c);
    Decoded speculate(const DecodeCase& c, const Propose& propose);

    // Tokens that end a draft; none by default.
    std::function<bool(Token)> is_end_of_text = [](Token) { return false; };

    LoadedModel& model;
    ForwardRig rig;

  private:
    // Feeds the prompt and takes the first token; the sampler has heard both.
    std::vector<Token> start(const DecodeCase& c, Sampler& sampler);
};

// How plain decoding and a speculative run agree.
struct Agreement {
    bool is_equal = true;
    std::size_t first_difference = 0;  // index of the generated token
    float gap = 0;                     // of plain decoding there
};
Agreement compare(const Decoded& plain, const Decoded& speculative);

}  // namespace knap::test
