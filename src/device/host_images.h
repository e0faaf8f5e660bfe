// A device's tensors as the host sees them: the tensors themselves on a host device, copies
// elsewhere.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "ggml.h"

namespace knap {

class Backend;

class HostImages {
  public:
    explicit HostImages(Backend& backend) : backend_(backend) {}

    // Copies a tensor to the host, in its current state.
    void add(ggml_tensor* tensor);
    // The host data of a tensor that was added.
    std::byte* data(ggml_tensor* tensor);
    // Copies every tensor back to the device, with any changes.
    void store();

  private:
    Backend& backend_;
    std::map<ggml_tensor*, std::vector<std::byte>> images_;  // empty on a host device
};

}  // namespace knap
