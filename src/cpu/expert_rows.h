// Memory for the experts of a layer in a pass: what rows have chosen, and what the experts have
// given.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cpu/cpu_weights.h"
#include "graph/experts/expert_choice.h"
#include "graph/experts/expert_groups.h"

namespace knap {

class ExpertRows {
  public:
    // Makes room for passes of up to `max_rows` rows, each with up to `n_used` experts of the
    // layer.
    void reserve(const CpuLayer& layer, int n_used, int max_rows);
    std::size_t bytes() const;

    // The router's logits from this row on: [n_experts, ...]
    float* logits(int row, int n_experts) {
        return logits_.data() + static_cast<std::ptrdiff_t>(row) * n_experts;
    }
    // Chooses the experts of a row, once its logits are there.
    void choose(const ExpertSpec& spec, int row, int n_used);
    // Groups rows by their experts, once all have chosen.
    void group(const ExpertSpec& spec, int n_rows, int n_used);
    const ExpertGroups& groups() const { return groups_; }

    std::byte* hidden() { return hidden_.data(); }  // inputs of `down`, for every slot
    float* results() { return results_.data(); }    // [n_embd, slots]
    const float* results() const { return results_.data(); }

  private:
    std::vector<float> logits_;
    std::vector<ChosenExpert> chosen_;  // [n_used, n_rows]
    ExpertGroups groups_;
    std::vector<std::byte> hidden_;
    std::vector<float> results_;
};

}  // namespace knap
