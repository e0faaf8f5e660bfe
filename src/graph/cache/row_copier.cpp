#include "graph/cache/row_copier.h"

#include "ggml-alloc.h"
#include "ggml-backend.h"

#include "base/error.h"
#include "device/backend.h"

namespace knap {
namespace {

constexpr std::size_t kNodesPerFormat = 3;  // the cache by units, what is read, what is written

// The format's tensor with a unit in each row: [values of a unit, n_units].
ggml_tensor* by_units(ggml_context* ctx, const RowFormat& format) {
    const std::int64_t n_units =
        static_cast<std::int64_t>(ggml_nbytes(format.tensor)) / format.unit_bytes;
    return ggml_reshape_2d(ctx, format.tensor, ggml_nelements(format.tensor) / n_units, n_units);
}

}  // namespace

RowCopier::RowCopier(Backend& backend, std::span<const RowFormat> formats, const Size& size)
    : backend_(backend),
      size_(size),
      context_(ggml_init({4 * ggml_tensor_overhead(), nullptr, true})),
      keys_(new_units(formats[0])),
      values_(new_units(formats[1])) {
    indices_.emplace(backend, context_.get(), "the rows of a copy");
    const std::size_t n_nodes = kNodesPerFormat * formats.size();
    graph_context_.reset(
        ggml_init({n_nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(n_nodes, false),
                   nullptr, true}));
    graph_ = ggml_new_graph_custom(graph_context_.get(), n_nodes, false);
    for (std::size_t i = 0; i < formats.size(); ++i) {
        add_copy(formats[i], i % 2 == 0 ? keys_ : values_);
    }
    const WorkerWait wait = backend.waiting();
    allocator_.reset(ggml_gallocr_new(backend.buffer_type()));
    if (!ggml_gallocr_alloc_graph(allocator_.get(), graph_)) {
        fail("memory: expected room to copy rows of the cache, found less");
    }
}

RowCopier::Units RowCopier::new_units(const RowFormat& format) const {
    const std::int64_t n = format.n_units * size_.n_kv_heads * size_.n_rows;
    return {.format = format,
            .from = ggml_new_tensor_1d(context_.get(), GGML_TYPE_I32, n),
            .to = ggml_new_tensor_1d(context_.get(), GGML_TYPE_I64, n)};
}

void RowCopier::add_copy(const RowFormat& format, const Units& units) {
    ggml_context* ctx = graph_context_.get();
    ggml_tensor* cache = by_units(ctx, format);
    ggml_tensor* read = ggml_get_rows(ctx, cache, units.from);
    ggml_build_forward_expand(graph_, ggml_set_rows(ctx, cache, read, units.to));
}

void RowCopier::set(const Units& units, int from, int to) const {
    auto read = indices_->host<std::int32_t>(units.from).begin();
    auto written = indices_->host<std::int64_t>(units.to).begin();
    for (int row = 0; row < size_.n_rows; ++row) {
        for (int head = 0; head < size_.n_kv_heads; ++head) {
            for (std::int64_t unit = 0; unit < units.format.n_units; ++unit) {
                *read++ = static_cast<std::int32_t>(units.format.index(head, from + row, unit));
                *written++ = units.format.index(head, to + row, unit);
            }
        }
    }
}

void RowCopier::copy(int from, int to) {
    backend_.wait();  // the indices of an earlier copy are still being read
    set(keys_, from, to);
    set(values_, from, to);
    indices_->upload_until(values_.to, ggml_nbytes(values_.to));
    backend_.compute(graph_);
}

}  // namespace knap
