// A device's tensors as the program sees them: themselves on a host device, copies elsewhere.
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

    // Brings a tensor here, as it is now.
    void add(ggml_tensor* tensor);
    // Of a tensor that was added.
    std::byte* data(ggml_tensor* tensor);
    // Takes every tensor back to the device, with what was changed.
    void store();

  private:
    Backend& backend_;
    std::map<ggml_tensor*, std::vector<std::byte>> images_;  // none of a host device
};

}  // namespace knap
