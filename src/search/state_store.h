// Keeps the residual streams of a search's states between passes, and computes on them. A stream
// has r rows, f32 [n_embd, r], and is identified by an index: the first 2L + 1 are the target's
// X[i] and permanent, later ones are allocated and released. One implementation is in host memory
// and copies streams to every pass and back. The other is the stream bank of a device: passes read
// and write it there, and only scores come back.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "knap/types.h"

#include "forward/forward.h"
#include "search/target_rows.h"

namespace knap {

// The states of one pass, and their results.
struct StateBatch {
    std::span<const int> from{};  // input streams: the rows of the pass, in this order
    std::span<const int> to{};    // [as many] streams that receive its one capture, likewise
    int target = 0;               // the stream that the results are compared with
    std::span<double> scores{};   // [as many] sums of r cosines
};

class StateStore {
  public:
    virtual ~StateStore() = default;

    // Returns an index for a stream to be computed.
    int allocate();
    // Frees a stream. Does nothing for the target's.
    void release(int stream);

    // Runs `request`, which has one capture and specifies no input rows. Returns false when
    // cancelled.
    virtual bool run(ForwardRequest request, const StateBatch& batch) = 0;
    // Scores streams as they are. Returns false when cancelled.
    virtual bool compare(std::span<const int> streams, int target, std::span<double> scores) = 0;
    // The head's argmax for each row. Empty when cancelled.
    virtual std::vector<Token> choices(int stream) = 0;

  protected:
    explicit StateStore(int n_target) : n_target_(n_target), n_allocated_(n_target) {}

    int n_target() const { return n_target_; }  // 2L + 1

  private:
    int n_target_;
    int n_allocated_;        // indices ever in use, the target's included
    std::vector<int> free_;  // those of them that were released
};

// A store for `target`, which must have streams and outlive the store, and up to `n_more` more
// streams. Uses a stream bank if the target is in one or a bank has room for all; otherwise, and
// for `n_more` = 0, host memory.
std::unique_ptr<StateStore> make_state_store(Forward& forward,
                                             const TargetRows& target,
                                             std::size_t n_more);

}  // namespace knap
