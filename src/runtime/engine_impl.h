// The implementation of Engine. Shared by the files of this folder and by `check` and benchmarks,
// which use the parts; nothing else includes this.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "knap/knap.h"

#include "forward/plan_cost.h"
#include "forward/single_sequence.h"
#include "model/adapter.h"
#include "model/config.h"
#include "model/gguf/gguf_file.h"
#include "model/weights.h"
#include "runtime/device_models.h"
#include "runtime/layer_devices.h"
#include "runtime/learned_store.h"
#include "runtime/scheduling/page_supply.h"
#include "runtime/scheduling/scheduler.h"
#include "text/tokenizer.h"

namespace knap {

struct Engine::Impl {
    explicit Impl(RuntimeConfig runtime_config);

    const LayerMap& layers() const { return devices.layers(); }
    // The device of the head, which runs everything after the layers.
    Backend& head_backend() const { return *layers().last().backend; }
    // What sessions compute with. Made when first asked for, from any thread.
    Pipeline& pipeline();
    Scheduler& passes();
    PageSupply& pages();
    // A sequence of its own, for up to `n_rows` rows and passes of up to `max_rows`. Its passes
    // take turns with those of sessions.
    std::unique_ptr<SingleSequence> single_sequence(int n_rows, int max_rows);
    // What all devices promise together.
    DeviceLimits limits() const { return weakest_limits(device_models); }

    RuntimeConfig config;  // with n_ctx, n_threads and device filled in
    GgufFile file;
    ModelConfig model;
    LayerDevices devices;
    std::unique_ptr<Weights> weights;  // points into `file`
    std::unique_ptr<Adapter> adapter;  // null: none
    std::unique_ptr<Tokenizer> tokenizer;
    // --- derived from the above, for every session ---
    // Passes of at most this many rows are bit-identical to single-row passes, if their attention
    // is.
    int exact_rows = 1;
    ModelCost cost;                 // with the configured cache types
    std::uint64_t fingerprint = 0;  // of the file
    double load_ms = 0;
    DeviceModels device_models;
    DeviceModels adapter_devices;           // none without an adapter
    std::unique_ptr<LearnedStore> learned;  // null: nothing is kept from run to run

    // True if ggml's attention on devices other than the host should be made batch-invariant.
    bool pads_to_be_invariant() const;

  private:
    struct Passes {
        explicit Passes(Engine::Impl& engine);
        Pipeline pipeline;
        Scheduler scheduler;
        PageSupply pages;
    };
    Passes& open_passes();
    DeviceModels new_device_models() const;
    bool is_batch_invariant() const;

    std::once_flag once_;
    std::unique_ptr<Passes> passes_;
};

// Rows above the context for what a round drafts, so that a nearly full context still speculates.
inline constexpr int kScratchRows = 256;

// Gives access to the implementation of the public classes.
struct ImplAccess {
    static Engine::Impl& of(const Engine& engine) { return *engine.impl_; }
};
inline Engine::Impl& impl_of(const Engine& engine) {
    return ImplAccess::of(engine);
}

}  // namespace knap
