// What strategies are made from, on a small random model.
#pragma once

#include <filesystem>

#include "decode/strategy.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test {

struct StrategyRig {
    explicit StrategyRig(const std::filesystem::path& path = tiny_model(),
                         const ForwardOptions& options = {});

    StrategyParts parts();

    LoadedModel model;
    ForwardRig rig;
    CostProfile profile;  // layer classes alone, until a test fills in samples
};

}  // namespace knap::test
