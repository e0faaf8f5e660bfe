// Installs a caller's cancellation callback on the devices of a model while the object lives.
#pragma once

#include <functional>

#include "device/backend.h"
#include "device/layer_map.h"

namespace knap {

class CancelScope {
  public:
    // `is_cancelled` may be empty: never.
    CancelScope(const LayerMap& layers, const std::function<bool()>& is_cancelled)
        : layers_(layers) {
        set(is_cancelled);
    }
    ~CancelScope() { set({}); }
    CancelScope(const CancelScope&) = delete;
    CancelScope& operator=(const CancelScope&) = delete;

  private:
    void set(const std::function<bool()>& is_cancelled) const {
        for (const LayerShare& share : layers_.shares()) {
            share.backend->set_abort(is_cancelled);
        }
    }

    const LayerMap& layers_;
};

}  // namespace knap
