// Where a search keeps the residual streams of its states between passes, and what it computes of
// them there. A stream has r rows, f32 [n_embd, r], and is identified by an index: the first
// 2L + 1 are the target's X[i] and stay; those after them are allocated and released. One store is
// in host memory: it copies streams to every pass and back. The other is the stream bank of a
// device: passes read and write it there, and only numbers come back.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "knap/types.h"

#include "graph/forward.h"
#include "search/target_rows.h"

namespace knap {

// States that go through one pass, and what they become.
struct StateBatch {
    std::span<const int> from{};  // the rows of the pass, one stream after the other
    std::span<const int> to{};    // what its one capture becomes, likewise: as many
    int target = 0;               // the stream that those are compared with
    std::span<double> scores{};   // [as many] sums of r cosines
};

class StateStore {
  public:
    virtual ~StateStore() = default;

    // An index for a stream that is about to be computed.
    int allocate();
    // The stream is not needed any more. Does nothing to the target's.
    void release(int stream);

    // Runs `request`, which says nothing of its rows and has one capture. Returns false when
    // cancelled.
    virtual bool run(ForwardRequest request, const StateBatch& batch) = 0;
    // The scores of streams as they are. Returns false when cancelled.
    virtual bool compare(std::span<const int> streams, int target, std::span<double> scores) = 0;
    // The head's choice for each row. Empty when cancelled.
    virtual std::vector<Token> choices(int stream) = 0;

  protected:
    explicit StateStore(int n_target) : n_target_(n_target), n_allocated_(n_target) {}

    int n_target() const { return n_target_; }  // 2L + 1

  private:
    int n_target_;
    int n_allocated_;        // indices that were ever in use
    std::vector<int> free_;  // those of them that are not
};

// A store for `target`, which has streams, and at most `n_more` streams more. It is the bank where
// the target is in one or where a bank has room for all; host memory otherwise, and for
// `n_more` = 0. `target` must outlive it.
std::unique_ptr<StateStore> make_state_store(Forward& forward,
                                             const TargetRows& target,
                                             std::size_t n_more);

}  // namespace knap
