// Plain decoding and speculative rounds on one model, below the public interface, for tests that
// decoding is lossless.
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
    std::vector<float> gaps;       // of plain decoding: by how much each token was preferred
    std::vector<std::byte> cache;  // committed rows: all tokens but the last
    int n_drafted = 0;             // nodes
    int n_accepted = 0;
    int n_guessed = 0;   // guesses that became drafts
    int n_gathered = 0;  // rounds whose path was not a prefix of the tree
};

struct DecodeCase {
    std::vector<Token> prompt;
    int n_tokens = 0;
    SamplingOptions sampling{};
    AcceptanceRule rule = AcceptanceRule::shared_noise;
    int max_rows = 256;
};

// Chooses what to draft, given all tokens so far and the maximum length of a draft.
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
    // Feeds the prompt and samples the first token. The sampler has accepted both.
    std::vector<Token> start(const DecodeCase& c, Sampler& sampler);
};

// The comparison of plain decoding and a speculative run.
struct Agreement {
    bool is_equal = true;
    std::size_t first_difference = 0;  // index of the generated token
    float gap = 0;                     // of plain decoding at that token
};
Agreement compare(const Decoded& plain, const Decoded& speculative);

}  // namespace knap::test
