// Lends a caller's wish to cancel to the backend for as long as the object lives.
#pragma once

#include <functional>

#include "device/backend.h"

namespace knap {

class CancelScope {
  public:
    // `is_cancelled` may be empty: never.
    CancelScope(Backend& backend, const std::function<bool()>& is_cancelled) : backend_(backend) {
        backend_.set_abort(is_cancelled);
    }
    ~CancelScope() { backend_.set_abort({}); }
    CancelScope(const CancelScope&) = delete;
    CancelScope& operator=(const CancelScope&) = delete;

  private:
    Backend& backend_;
};

}  // namespace knap
