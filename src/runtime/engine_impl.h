// The implementation of Engine. Shared by the files of this folder and by `check` and benchmarks,
// which use the parts; nothing else includes this.
#pragma once

#include <cstdint>
#include <memory>

#include "knap/knap.h"

#include "forward/plan_cost.h"
#include "kv/kv_cache.h"
#include "model/adapter.h"
#include "model/config.h"
#include "model/gguf/gguf_file.h"
#include "model/weights.h"
#include "runtime/layer_devices.h"
#include "text/tokenizer.h"

namespace knap {

struct Engine::Impl {
    explicit Impl(RuntimeConfig runtime_config);

    const LayerMap& layers() const { return devices.layers(); }
    // The device of the head, which runs everything after the layers.
    Backend& head_backend() const { return *layers().last().backend; }
    // A cache of at least `n_rows` rows.
    KvCache make_cache(int n_rows) const;

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

    // True if attention on devices other than the host should be made batch-invariant.
    bool pads_for_bits() const;

  private:
    bool try_bits() const;
};

// Gives access to the implementation of the public classes.
struct ImplAccess {
    static Engine::Impl& of(const Engine& engine) { return *engine.impl_; }
};
inline Engine::Impl& impl_of(const Engine& engine) {
    return ImplAccess::of(engine);
}

}  // namespace knap
