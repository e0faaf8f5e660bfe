// The parts that strategies are built from, on a small random model.
#pragma once

#include <filesystem>

#include "decode/kangaroo/adapter_head.h"
#include "decode/strategy.h"
#include "model/adapter.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test {

struct StrategyRig {
    // Without a path, the adapter is a random one that fits the model.
    explicit StrategyRig(const std::filesystem::path& path = tiny_model(),
                         const ForwardOptions& options = {},
                         const std::filesystem::path& adapter_path = {});

    StrategyParts parts();

    LoadedModel model;
    ForwardRig rig;
    Adapter adapter;
    DeviceModels adapter_devices;
    AdapterParts adapter_parts;
    AdapterHead adapter_head;
    CostProfile profile;  // only layer classes, until a test adds samples
    bool trees_are_exact = false;
};

}  // namespace knap::test
