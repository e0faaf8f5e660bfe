#include "cpu/expert_rows.h"

#include <algorithm>

#include "kernels/matmul/packed_rows.h"

namespace knap {

void ExpertRows::reserve(const CpuLayer& layer, int n_used, int max_rows) {
    const auto n_rows = static_cast<std::size_t>(max_rows);
    const std::size_t n_slots = n_rows * static_cast<std::size_t>(n_used);
    const PackedMatrix& down = layer.experts.down.weight->matrix;
    const auto grow = [](auto& numbers, std::size_t n) {
        numbers.resize(std::max(numbers.size(), n));
    };
    grow(logits_, n_rows * static_cast<std::size_t>(layer.router.matrix->n_out));
    grow(chosen_, n_slots);
    grow(hidden_, n_slots * row_bytes(down));
    grow(results_, n_slots * static_cast<std::size_t>(down.n_out));
}

std::size_t ExpertRows::bytes() const {
    return (logits_.capacity() + results_.capacity()) * sizeof(float) +
           chosen_.capacity() * sizeof(ChosenExpert) + hidden_.capacity();
}

void ExpertRows::choose(const ExpertSpec& spec, int row, int n_used) {
    const auto n = static_cast<std::size_t>(n_used);
    choose_experts(spec, {logits(row, spec.n_experts), static_cast<std::size_t>(spec.n_experts)},
                   std::span(chosen_).subspan(static_cast<std::size_t>(row) * n, n));
}

void ExpertRows::group(const ExpertSpec& spec, int n_rows, int n_used) {
    const auto n = static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(n_used);
    groups_.assign(std::span(chosen_).first(n), n_used, spec.n_experts);
}

}  // namespace knap
