// The phases of a pass, in order, from what is asked for. What a plan leaves out is not there.
#pragma once

#include <span>
#include <vector>

#include "cuda/cuda_weights.h"
#include "forward/module_plan.h"
#include "graph/attention/attention_groups.h"

namespace knap {

struct PhaseRequest {
    const ModulePlan* plan = nullptr;
    const AttentionGroups* groups = nullptr;
    int entry_layer = 0;
    int exit_layer = 0;
    std::span<const int> captures{};
    bool embeds_tokens = true;
    bool has_logits = false;
    bool chooses = false;
    bool draws = false;  // chooses at random
};

// Replaces `phases`, which keeps its memory.
void list_phases(const CudaWeights& weights,
                 const PhaseRequest& request,
                 std::vector<CudaPhase>& phases);

}  // namespace knap
