#include "tools/peer/llama_answer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace knap {
namespace {

// llama-server keeps the place of the pending token and one more, for when it shifts a context.
constexpr int kReservedRows = 2;

void count(std::vector<int>& by_position, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        ++by_position[i];
    }
}

class Writing {
  public:
    Writing(LlamaPeer& peer, LlamaDrafts* drafts, const LlamaAnswerRequest& request)
        : peer_(peer), drafts_(drafts), request_(request), answer_{.tokens = {request.first}} {}

    int n_left() const { return request_.n_tokens - static_cast<int>(answer_.tokens.size()); }

    void take_round() {
        const Token pending = answer_.tokens.back();
        const std::span<const Token> draft = make_draft(pending);
        const int n_rows = peer_.n_rows();
        const std::size_t n_accepted = verify(pending, draft);
        peer_.truncate(n_rows + 1 + static_cast<int>(n_accepted));
        note(draft.size(), n_accepted);
    }

    LlamaAnswer finish() {
        answer_.decode_ms = watch_.elapsed_ms();
        return std::move(answer_);
    }

  private:
    std::span<const Token> make_draft(Token pending) {
        if (drafts_ == nullptr) {
            return {};
        }
        const Stopwatch watch;
        const int n_room = peer_.n_ctx() - peer_.n_rows() - kReservedRows;
        const auto draft = drafts_->draft(pending, std::min(n_room, n_left() - 1));
        answer_.draft_ms += watch.elapsed_ms();
        return draft;
    }

    // Returns how many tokens of the draft are accepted.
    std::size_t verify(Token pending, std::span<const Token> draft) {
        const Stopwatch watch;
        std::vector<Token> tokens{pending};
        tokens.insert(tokens.end(), draft.begin(), draft.end());
        const auto logits = peer_.feed(tokens, LlamaPeer::Logits::every_row);
        std::size_t n_accepted = 0;
        for (std::size_t row = 0; row < logits.size(); ++row) {
            answer_.tokens.push_back(request_.choose(answer_.tokens.size(), logits[row]));
            if (row == draft.size() || draft[row] != answer_.tokens.back()) {
                break;
            }
            ++n_accepted;
        }
        answer_.verify_ms += watch.elapsed_ms();
        return n_accepted;
    }

    void note(std::size_t n_drafted, std::size_t n_accepted) {
        ++answer_.n_rounds;
        const std::size_t n_positions = std::max(answer_.drafted.size(), n_drafted);
        answer_.drafted.resize(n_positions);
        answer_.accepted.resize(n_positions);
        count(answer_.drafted, n_drafted);
        count(answer_.accepted, n_accepted);
        if (drafts_ != nullptr) {
            const Stopwatch watch;
            drafts_->accept(n_accepted);
            answer_.draft_ms += watch.elapsed_ms();
        }
    }

    LlamaPeer& peer_;
    LlamaDrafts* drafts_;
    const LlamaAnswerRequest& request_;
    LlamaAnswer answer_;
    Stopwatch watch_;
};

}  // namespace

int LlamaAnswer::n_drafted() const {
    return std::accumulate(drafted.begin(), drafted.end(), 0);
}

int LlamaAnswer::n_accepted() const {
    return std::accumulate(accepted.begin(), accepted.end(), 0);
}

std::optional<LlamaAnswer> write_answer(LlamaPeer& peer,
                                        LlamaDrafts* drafts,
                                        const LlamaAnswerRequest& request) {
    KNAP_ASSERT(peer.n_rows() == static_cast<int>(request.prompt.size()),
                "an answer begins after its prompt");
    if (drafts != nullptr) {
        drafts->begin(request.prompt);  // part of the prefill, as llama-server counts it
    }
    Writing writing(peer, drafts, request);
    while (writing.n_left() > 0) {
        if (request.is_cancelled && request.is_cancelled()) {
            return std::nullopt;
        }
        writing.take_round();
    }
    return writing.finish();
}

}  // namespace knap
