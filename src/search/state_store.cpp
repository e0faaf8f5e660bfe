#include "search/state_store.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "model/config.h"
#include "search/cosine.h"
#include "search/head_rows.h"

namespace knap {

namespace {

std::size_t size_of(int n) {
    return static_cast<std::size_t>(n);
}

class HostStateStore final : public StateStore {
  public:
    HostStateStore(Forward& forward, const TargetRows& target)
        : StateStore(count_streams(forward)), forward_(forward), target_(target) {
        KNAP_ASSERT(target.streams.size() == size_of(n_target()), "the target has streams");
    }

    bool run(ForwardRequest request, const StateBatch& batch) override {
        hidden_.clear();
        for (const int index : batch.from) {
            const std::span<const float> rows = stream(index);
            hidden_.insert(hidden_.end(), rows.begin(), rows.end());
        }
        request.hidden = hidden_;
        const ForwardResult result = forward_.run(request);
        if (!result.is_complete) {
            return false;
        }
        const std::size_t size = hidden_.size() / batch.from.size();
        for (std::size_t i = 0; i < batch.to.size(); ++i) {
            const auto computed = result.captures.front().subspan(i * size, size);
            own(batch.to[i]).assign(computed.begin(), computed.end());
        }
        return compare(batch.to, batch.target, batch.scores);
    }

    bool compare(std::span<const int> streams, int target, std::span<double> scores) override {
        for (std::size_t i = 0; i < streams.size(); ++i) {
            scores[i] = sum_of_cosines(stream(streams[i]), stream(target), target_.n_rows());
        }
        return true;
    }

    std::vector<Token> choices(int index) override { return choices_of(forward_, stream(index)); }

  private:
    std::span<const float> stream(int index) {
        return index < n_target() ? target_.streams[size_of(index)] : own(index);
    }

    std::vector<float>& own(int index) {
        const auto place = size_of(index - n_target());
        own_.resize(std::max(own_.size(), place + 1));
        return own_[place];
    }

    Forward& forward_;
    const TargetRows& target_;
    std::vector<std::vector<float>> own_;  // [n_embd, r] each
    std::vector<float> hidden_;            // input of a pass; a member to keep its memory
};

class BankStateStore final : public StateStore {
  public:
    BankStateStore(Forward& forward, std::shared_ptr<const StreamBank> bank, int n_rows)
        : StateStore(count_streams(forward)),
          forward_(forward),
          bank_(std::move(bank)),
          n_rows_(n_rows) {}

    // Copies the target's streams to the bank. Returns false when cancelled.
    bool upload(std::span<const std::vector<float>> streams) {
        for (int i = 0; i < n_target(); ++i) {
            const std::vector<int> to = rows_of(std::span(&i, 1));
            ForwardRequest request = idle();
            request.hidden = streams[size_of(i)];
            request.bank.captured = to;
            if (!forward_.run(request).is_complete) {
                return false;
            }
        }
        return true;
    }

    bool run(ForwardRequest request, const StateBatch& batch) override {
        const std::vector<int> from = rows_of(batch.from);
        const std::vector<int> to = rows_of(batch.to);
        const std::vector<int> target = rows_of(std::vector<int>(batch.from.size(), batch.target));
        request.bank = {.hidden = from, .captured = to, .compared = target};
        const ForwardResult result = forward_.run(request);
        for (std::size_t i = 0; i < batch.scores.size() && result.is_complete; ++i) {
            const auto cosines = result.cosines.subspan(i * size_of(n_rows_), size_of(n_rows_));
            batch.scores[i] = std::accumulate(cosines.begin(), cosines.end(), 0.0);
        }
        return result.is_complete;
    }

    bool compare(std::span<const int> streams, int target, std::span<double> scores) override {
        return run(idle(), {.from = streams, .target = target, .scores = scores});
    }

    std::vector<Token> choices(int stream) override {
        return choices_of(forward_, rows_of(std::span(&stream, 1)));
    }

  private:
    // A pass that captures its input rows unchanged. No layer runs, so nothing is written to the
    // cache row that it names.
    ForwardRequest idle() const {
        return {.first_row = 0,
                .entry_layer = forward_.config().n_layers,
                .captures = std::span(&last_stream_, 1),
                .kind = PassKind::search};
    }

    // The bank rows of these streams, stream by stream.
    std::vector<int> rows_of(std::span<const int> streams) const {
        std::vector<int> rows;
        rows.reserve(streams.size() * size_of(n_rows_));
        for (const int stream : streams) {
            for (int row = 0; row < n_rows_; ++row) {
                rows.push_back(stream * n_rows_ + row);
            }
        }
        return rows;
    }

    Forward& forward_;
    std::shared_ptr<const StreamBank> bank_;  // borrowed, so no other search uses it
    int n_rows_;                              // r
    int last_stream_ = n_target() - 1;
};

}  // namespace

int StateStore::allocate() {
    if (free_.empty()) {
        return n_allocated_++;
    }
    const int stream = free_.back();
    free_.pop_back();
    return stream;
}

void StateStore::release(int stream) {
    if (stream >= n_target_) {
        free_.push_back(stream);
    }
}

std::unique_ptr<StateStore> make_state_store(Forward& forward,
                                             const TargetRows& target,
                                             std::size_t n_more) {
    if (target.bank != nullptr) {
        return std::make_unique<BankStateStore>(forward, target.bank, target.n_rows());
    }
    if (auto bank = n_more > 0 ? borrow_stream_bank(forward, target.n_rows(), n_more) : nullptr) {
        auto store = std::make_unique<BankStateStore>(forward, std::move(bank), target.n_rows());
        if (store->upload(target.streams)) {
            return store;
        }
    }
    // If the upload was cancelled, the next pass will be, too.
    return std::make_unique<HostStateStore>(forward, target);
}

}  // namespace knap
