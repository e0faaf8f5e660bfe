// A forward pass through the layers that one device computes: a leg of what Forward does. It has
// the device's graphs, inputs and compute memory.
#pragma once

#include <memory>

#include "device/layer_map.h"
#include "graph/forward.h"
#include "graph/forward_outputs.h"

namespace knap {

class KvStore;

class Stage {
  public:
    // Reserves the memory of the largest pass through the layers of `cache`. Everything given must
    // outlive the object.
    Stage(const ModelConfig& config, const ModelTensors& tensors, KvStore& cache, int n_ubatch);
    ~Stage();

    const LayerShare& share() const;
    void set_draft_head(HeadSubset& head);

    // Runs a request whose layers are this device's, all of whose defaults are filled in: the plan,
    // the layers and the context of its layout. With `gives_stream` the stream of all rows comes
    // out behind the last layer.
    StageResult run(const ForwardRequest& request, bool gives_stream);

    // Only of a stage that has all layers: the whole model runs again and again.
    int max_chain(int first_row) const;
    // Likewise filled in.
    ChainResult run_chain(const ChainRequest& request, int context);

    // Only of a stage that has all layers: see Forward.
    std::shared_ptr<const StreamBank> borrow_bank(std::size_t n_rows);
    std::size_t n_bank_rows() const;  // 0: there is no bank

    int max_rows(int first_row) const;
    ForwardStatistics statistics() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
