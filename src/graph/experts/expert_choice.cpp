#include "graph/experts/expert_choice.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace knap {
namespace {

bool contains(std::span<const ChosenExpert> chosen, std::size_t id) {
    return std::ranges::find(chosen, static_cast<std::int32_t>(id), &ChosenExpert::id) !=
           chosen.end();
}

// Always an id, also among logits that are no numbers.
std::size_t best_of_rest(std::span<const float> logits, std::span<const ChosenExpert> chosen) {
    std::size_t best = logits.size();
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const bool may_win = best == logits.size() || logits[i] > logits[best];
        if (may_win && !contains(chosen, i)) {
            best = i;
        }
    }
    return best;
}

}  // namespace

int n_experts_used(const ExpertSpec& spec, int n_allowed) {
    return n_allowed > 0 ? std::min(n_allowed, spec.n_used) : spec.n_used;
}

void choose_experts(const ExpertSpec& spec,
                    std::span<const float> logits,
                    std::span<ChosenExpert> chosen) {
    KNAP_ASSERT(chosen.size() <= logits.size(), "a row uses experts that there are");
    for (std::size_t rank = 0; rank < chosen.size(); ++rank) {
        const std::size_t id = best_of_rest(logits, chosen.first(rank));
        chosen[rank] = {.id = static_cast<std::int32_t>(id), .weight = logits[id]};
    }
    const float highest = chosen.front().weight;
    float of_chosen = 0;
    for (ChosenExpert& expert : chosen) {
        expert.weight = std::exp(expert.weight - highest);
        of_chosen += expert.weight;
    }
    float of_all = 0;
    for (const float logit : logits) {
        of_all += std::exp(logit - highest);
    }
    float sum = 0;
    for (ChosenExpert& expert : chosen) {
        expert.weight /= spec.gating == Gating::chosen ? of_chosen : of_all;
        sum += expert.weight;
    }
    if (spec.normalises) {
        for (ChosenExpert& expert : chosen) {
            expert.weight /= std::max(sum, kLeastWeightSum);
        }
    }
}

}  // namespace knap
