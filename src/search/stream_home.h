// Where a search keeps residual streams between its passes, and what it computes of them there.
// Streams are of r rows each, f32 [n_embd, r], and known by numbers: the first 2L + 1 are the
// target's X[i] and stay; those behind are taken and given back. There are two homes: the program's
// memory, from which streams are carried to every pass and back, and the bank of a device, where
// passes find and leave them and from which only numbers come.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "knap/types.h"

#include "graph/forward.h"
#include "search/target_rows.h"

namespace knap {

// Streams that go through a pass, and what becomes of them.
struct StreamStep {
    std::span<const int> from{};  // the rows of the pass, one stream behind the other
    std::span<const int> to{};    // what its one capture becomes, likewise: as many
    int target = 0;               // what those are compared with
    std::span<double> scores{};   // [as many] sums of r cosines
};

class StreamHome {
  public:
    virtual ~StreamHome() = default;

    // A number for a stream that is about to be computed.
    int take();
    // The stream is not needed any more; nothing happens to the target's.
    void give_back(int stream);

    // Runs `request`, which says nothing of its rows and has one capture. False: cancelled.
    virtual bool run(ForwardRequest request, const StreamStep& step) = 0;
    // The scores of streams as they are. False: cancelled.
    virtual bool compare(std::span<const int> streams, int target, std::span<double> scores) = 0;
    // The head's choice for each row (methods 3.9). Empty: cancelled.
    virtual std::vector<Token> choices(int stream) = 0;

  protected:
    explicit StreamHome(int n_target) : n_target_(n_target), n_numbers_(n_target) {}

    int n_target() const { return n_target_; }  // 2L + 1

  private:
    int n_target_;
    int n_numbers_;          // that were ever in use
    std::vector<int> free_;  // of those
};

// A home for `target`, which has streams, and at most `n_more` streams more: the bank where the
// target lies or where there is room for all; the program's memory otherwise, and for `n_more` = 0.
// `target` must outlive it.
std::unique_ptr<StreamHome> find_home(Forward& forward,
                                      const TargetRows& target,
                                      std::size_t n_more);

}  // namespace knap
