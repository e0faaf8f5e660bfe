// One sequence with its own memory and stages, apart from those of an engine's sessions: for
// measurements, searches and checks, and for tests.
#pragma once

#include <memory>
#include <span>

#include "forward/direct_runner.h"
#include "forward/forward.h"
#include "forward/pipeline.h"
#include "kv/sequence.h"

namespace knap {

class SingleSequence {
  public:
    // For a text of up to `capacity` rows and passes of up to `max_rows`.
    SingleSequence(const ModelConfig& config,
                   std::span<const std::unique_ptr<DeviceModel>> devices,
                   int capacity,
                   int max_rows,
                   PassRunner* turns = nullptr)  // see DirectRunner
        : pipeline_(config, devices, {.capacity = capacity, .max_rows = max_rows}),
          runner_(pipeline_, turns),
          sequence_(pipeline_.memory(), capacity),
          forward_(pipeline_, runner_, sequence_) {
        sequence_.reserve(capacity);
    }

    Pipeline& pipeline() { return pipeline_; }
    Sequence& sequence() { return sequence_; }
    const Sequence& sequence() const { return sequence_; }
    Forward& forward() { return forward_; }
    const Forward& forward() const { return forward_; }

  private:
    Pipeline pipeline_;
    DirectRunner runner_;
    Sequence sequence_;
    Forward forward_;
};

}  // namespace knap
