// The part of a forward pass on one device, through the layers that it computes. Has the device's
// graphs, inputs and compute memory.
#pragma once

#include <memory>

#include "device/layer_map.h"
#include "graph/forward.h"
#include "graph/forward_outputs.h"

namespace knap {

class KvStore;

class Stage {
  public:
    // Reserves the memory of the largest pass through the layers of `cache`. All arguments must
    // outlive the object.
    Stage(const ModelConfig& config, const ModelTensors& tensors, KvStore& cache, int n_ubatch);
    ~Stage();

    const LayerShare& share() const;
    void set_draft_head(HeadSubset& head);

    // Runs a request for this device's layers, with all defaults filled in: the plan, the layers
    // and the context of its layout. With `gives_stream` it also returns the stream of all rows
    // after the last layer.
    StageResult run(const ForwardRequest& request, bool gives_stream);

    // Only for a stage that has all layers, since a chain goes through them repeatedly.
    int max_chain(int first_row) const;
    // Also with all defaults filled in.
    ChainResult run_chain(const ChainRequest& request, int context);

    // Only for a stage that has all layers: see Forward.
    std::shared_ptr<const StreamBank> borrow_bank(std::size_t n_rows);
    std::size_t n_bank_rows() const;  // 0: no bank

    int max_rows(int first_row) const;
    ForwardStatistics statistics() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
