#include "support/strategy_rig.h"

#include "model/layer_classes.h"

namespace knap::test {

namespace {

constexpr int kMaxRows = 256;

}  // namespace

StrategyRig::StrategyRig(const std::filesystem::path& path, const ForwardOptions& options)
    : model(path), rig(model, options), profile{.layer_classes = classify_layers(*model.weights)} {}

StrategyParts StrategyRig::parts() {
    return {.config = model.config,
            .forward = rig.forward,
            .cache = rig.cache,
            .profile = profile,
            .max_rows = kMaxRows};
}

}  // namespace knap::test
