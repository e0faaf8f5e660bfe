#include "support/strategy_rig.h"

#include "base/text.h"
#include "model/layer_classes.h"
#include "support/tiny_adapter.h"

namespace knap::test {

namespace {

constexpr int kMaxRows = 256;

std::filesystem::path write_adapter(const ModelConfig& config) {
    return write_tiny(tiny_adapter({.exit_layer = config.n_layers / 2, .n_embd = config.n_embd}),
                      concat("adapter-", config.n_embd, ".gguf"));
}

}  // namespace

StrategyRig::StrategyRig(const std::filesystem::path& path,
                         const ForwardOptions& options,
                         const std::filesystem::path& adapter_path)
    : model(path),
      rig(model, options),
      adapter(adapter_path.empty() ? write_adapter(model.config) : adapter_path,
              model.config,
              *model.weights,
              model.backend,
              {.repack = Repack::off, .kernels = Kernels::ggml}),
      adapter_devices(new_device_models(adapter.config(),
                                        adapter.tensors(),
                                        LayerMap(model.backend, adapter.config().n_layers),
                                        {},
                                        1)),
      adapter_parts{.adapter = adapter,
                    .devices = adapter_devices,
                    .capacity = options.capacity,
                    .n_ubatch = options.n_ubatch},
      adapter_head(adapter_parts),
      profile{.layer_classes = classify_layers(*model.weights)} {}

StrategyParts StrategyRig::parts() {
    return {.config = model.config,
            .forward = rig.forward,
            .cache = rig.cache,
            .profile = profile,
            .max_rows = kMaxRows,
            .trees_are_exact = trees_are_exact,
            .adapter = &adapter_head};
}

}  // namespace knap::test
