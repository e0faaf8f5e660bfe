// A made-up outcome of a round, with numbers that identify rows, streams and channels.
#pragma once

#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/strategy.h"
#include "sampling/draft_tree.h"

namespace knap::test {

// The token of the text at a position, whatever is drafted.
Token token_at(int position, int n_vocab);
// The value of capture `stream` for an accepted row.
float stream_value(int row, int stream, int channel);

struct FakeRoundShape {
    int row = 0;  // of the pending token
    int n_drafted = 0;
    int n_accepted = 0;
    int n_embd = 1;
    int n_vocab = 7;
    int n_streams = 0;
    double draft_ms = 0;
    double verify_ms = 0;
    PassFacts pass{};  // that verifies
    bool is_forced = false;
    bool has_siblings = false;  // every draft follows a wrong one for its position
};

// Owns the data of its outcome. The first n_accepted drafts are right, the others wrong.
class FakeRound {
  public:
    explicit FakeRound(const FakeRoundShape& shape);
    FakeRound(const FakeRound&) = delete;
    FakeRound& operator=(const FakeRound&) = delete;

    Token pending() const { return token_at(shape_.row, shape_.n_vocab); }
    RoundOutcome outcome() const;

  private:
    FakeRoundShape shape_;
    DraftTree tree_;
    std::vector<int> path_;
    std::vector<Token> emitted_;
    std::vector<float> logits_;
    std::vector<std::vector<float>> streams_;
    std::vector<std::span<const float>> captures_;
};

}  // namespace knap::test
