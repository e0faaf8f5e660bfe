#include "graph/attention/rope_rows.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "ggml-backend.h"
#include "ggml-cpp.h"

#include "base/error.h"
#include "device/backend.h"
#include "graph/rotation.h"

namespace knap {

RopeRows::RopeRows(const RopeConfig& rope, ggml_tensor* divisors)
    : rope_(rope), divisors_(divisors), backend_(std::make_unique<Backend>(1)) {}

RopeRows::~RopeRows() = default;

const float* RopeRows::at(int position) {
    const auto block = static_cast<std::size_t>(position / kBlock);
    if (blocks_.size() <= block) {
        blocks_.resize(block + 1);
    }
    if (blocks_[block].empty()) {
        blocks_[block] = compute(position - position % kBlock);
    }
    return blocks_[block].data() + std::ptrdiff_t{position % kBlock} * rope_.n_rot;
}

RopeRows::Block RopeRows::compute(int first) const {
    constexpr std::size_t kTensors = 8;
    const ggml_context_ptr context(
        ggml_init({kTensors * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true}));
    ggml_context* ctx = context.get();
    ggml_tensor* pairs = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, rope_.n_rot, kBlock);
    ggml_tensor* positions = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, kBlock);
    ggml_tensor* divisors = divisors_;
    if (!rope_.divisors.empty()) {
        divisors = ggml_new_tensor_1d(ctx, GGML_TYPE_F32,
                                      static_cast<std::int64_t>(rope_.divisors.size()));
    }
    ggml_tensor* turns = build_rope_table(ctx, rope_, pairs, positions, divisors);
    const ggml_backend_buffer_ptr buffer(
        ggml_backend_alloc_ctx_tensors_from_buft(ctx, backend_->buffer_type()));
    if (buffer == nullptr) {
        fail("memory: expected room for the rotations of ", kBlock, " positions, found less");
    }
    const auto n = static_cast<std::size_t>(ggml_nelements(pairs));
    fill_unit_pairs(rope_, {static_cast<float*>(pairs->data), n});
    if (!rope_.divisors.empty()) {
        std::ranges::copy(rope_.divisors, static_cast<float*>(divisors->data));
    }
    auto* numbers = static_cast<std::int32_t*>(positions->data);
    std::iota(numbers, numbers + kBlock, first);
    ggml_cgraph* graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, turns);
    backend_->compute(graph);
    const auto* computed = static_cast<const float*>(turns->data);
    return {computed, computed + n};
}

std::size_t RopeRows::bytes() const {
    return std::accumulate(
        blocks_.begin(), blocks_.end(), std::size_t{0},
        [](std::size_t sum, const Block& block) { return sum + block.size() * sizeof(float); });
}

}  // namespace knap
