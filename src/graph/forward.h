// The forward pass: takes a request, returns logits and captured streams. It handles plans, rows
// and the cache, and knows no strategy.
#pragma once

#include <memory>

#include "forward/pass.h"

namespace knap {

class HeadSubset;
class KvCache;
class StreamBank;
struct ModelConfig;
struct ModelTensors;

// Logit rows that memory is reserved for in advance. A pass that needs more makes it grow once.
inline constexpr int kReservedLogitRows = 32;

class Forward {
  public:
    // Reserves the memory of the largest pass. Layers are computed on the device that has their
    // cache rows. All arguments must outlive the object. Graphs refer to the cache's tensors, so
    // one Forward serves one cache. Layers whose tensors have no MLP consist of attention only,
    // whatever the plan.
    Forward(const ModelConfig& config, const ModelTensors& tensors, KvCache& cache, int n_ubatch);
    ~Forward();

    // Enables plans with a reduced head, with these rows of the head. `head` must outlive the
    // object.
    void set_draft_head(HeadSubset& head);
    // The cheapest head that a plan may use.
    HeadLevel cheapest_head() const;

    // Runs the pass. Does not change the number of committed rows. The rows must fit max_rows() and
    // the cache.
    ForwardResult run(const ForwardRequest& request);

    // The most passes of a chain whose first row is cache row `first_row`. 0 for every row if the
    // device is the host, where returning to the program after every token costs nothing.
    int max_chain(int first_row) const;
    ChainResult run_chain(const ChainRequest& request);

    // Lends memory for `n_rows` rows of streams on the device, to one holder at a time, for as long
    // as the pointer is held; the object must outlive it. The rows are uninitialised. Null if
    // streams have to go through host memory: because the device computes there, because there are
    // several devices, or because there is no room.
    std::shared_ptr<const StreamBank> borrow_bank(std::size_t n_rows);

    // The most rows of a pass whose first row is cache row `first_row`.
    int max_rows(int first_row) const;
    const ModelConfig& config() const;
    const ForwardStatistics& statistics() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
