#include "graph/experts/expert_groups.h"

#include <algorithm>

namespace knap {

// An expert has one block that is not full, at most.
int ExpertGroups::most_blocks(int n_slots, int n_experts) {
    return std::min(n_slots, n_experts + n_slots / kMaxSlots);
}

void ExpertGroups::assign(std::span<const ChosenExpert> chosen, int n_used, int n_experts) {
    n_used_ = n_used;
    ends_.assign(static_cast<std::size_t>(n_experts), 0);
    for (const ChosenExpert& expert : chosen) {
        ++ends_[static_cast<std::size_t>(expert.id)];
    }
    blocks_.clear();
    int first = 0;
    for (int expert = 0; expert < n_experts; ++expert) {
        int& end = ends_[static_cast<std::size_t>(expert)];
        const int n = end;
        for (int at = 0; at < n; at += kMaxSlots) {
            blocks_.push_back({.expert = expert,
                               .first_slot = first + at,
                               .n_slots = std::min(kMaxSlots, n - at)});
        }
        end = first;
        first += n;
    }
    slots_.resize(chosen.size());
    rows_.resize(chosen.size());
    weights_.resize(chosen.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        const int slot = ends_[static_cast<std::size_t>(chosen[i].id)]++;
        slots_[i] = slot;
        rows_[static_cast<std::size_t>(slot)] = static_cast<int>(i) / n_used;
        weights_[static_cast<std::size_t>(slot)] = chosen[i].weight;
    }
}

}  // namespace knap
