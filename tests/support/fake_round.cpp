#include "support/fake_round.h"

namespace knap::test {

Token token_at(int position, int n_vocab) {
    return position * 3 % n_vocab;
}

float stream_value(int row, int stream, int channel) {
    return static_cast<float>(row * 10000 + stream * 100 + channel);
}

FakeRound::FakeRound(const FakeRoundShape& shape) : shape_(shape) {
    std::vector<int> positions{shape.row};  // of the rows of the verification
    int parent = kPendingNode;
    for (int i = 0; i < shape.n_drafted; ++i) {
        const int position = shape.row + 1 + i;
        const Token right = token_at(position, shape.n_vocab);
        const bool is_right = i < shape.n_accepted;
        if (shape.has_siblings) {
            tree_.add((right + 2) % shape.n_vocab, parent);
            positions.push_back(position);
        }
        parent = tree_.add(is_right ? right : (right + 1) % shape.n_vocab, parent);
        positions.push_back(position);
        if (is_right) {
            path_.push_back(parent);
        }
    }
    for (int i = 0; i <= shape.n_accepted; ++i) {
        emitted_.push_back(token_at(shape.row + 1 + i, shape.n_vocab));
    }
    for (const int position : positions) {
        for (Token token = 0; token < shape.n_vocab; ++token) {
            logits_.push_back(token == token_at(position + 1, shape.n_vocab) ? 1.0f : 0.0f);
        }
    }
    for (int stream = 0; stream < shape.n_streams; ++stream) {
        std::vector<float>& values = streams_.emplace_back();
        for (const int position : positions) {
            for (int channel = 0; channel < shape.n_embd; ++channel) {
                values.push_back(stream_value(position, stream, channel));
            }
        }
        // A wrong sibling has other streams.
        for (std::size_t row = 1; shape.has_siblings && row < positions.size(); row += 2) {
            values[row * static_cast<std::size_t>(shape.n_embd)] = -1;
        }
    }
    captures_.assign(streams_.begin(), streams_.end());
}

RoundOutcome FakeRound::outcome() const {
    return {
        .tree = tree_,
        .path = path_,
        .emitted = emitted_,
        .gaps = {},
        .logits = LogitRows(logits_, static_cast<std::size_t>(shape_.n_vocab)),
        .captures = captures_,
        .is_forced = shape_.is_forced,
        .draft_ms = shape_.draft_ms,
        .verify_ms = shape_.verify_ms,
        .own_draft_ms = shape_.draft_ms,
        .own_verify_ms = shape_.verify_ms,
        .verify_pass = shape_.pass,
    };
}

}  // namespace knap::test
