#include "kv/kv_cache.h"

#include <cstring>

#include "base/error.h"
#include "device/backend.h"
#include "device/zeroed_buffer.h"
#include "kernels/attention.h"

namespace knap {
namespace {

ggml_type to_ggml(CacheType type) {
    switch (type) {
        case CacheType::f32:
            return GGML_TYPE_F32;
        case CacheType::f16:
            return GGML_TYPE_F16;
        case CacheType::q8_0:
            return GGML_TYPE_Q8_0;
    }
    return GGML_TYPE_COUNT;
}

void check_type(const char* flag, ggml_type type, int head_dim) {
    if (head_dim % ggml_blck_size(type) != 0) {
        fail(flag, " ", ggml_type_name(type),
             ": expected a model whose head size is a multiple of ", ggml_blck_size(type),
             ", found ", head_dim);
    }
}

std::size_t stored_bytes(ggml_type type, int n_values) {
    return ggml_type_size(type) * static_cast<std::size_t>(n_values) /
           static_cast<std::size_t>(ggml_blck_size(type));
}

}  // namespace

std::size_t kv_row_bytes(const ModelConfig& config, CacheType type_k, CacheType type_v) {
    return stored_bytes(to_ggml(type_k), config.n_embd_kv()) +
           stored_bytes(to_ggml(type_v), config.n_embd_kv());
}

KvCache::KvCache(const ModelConfig& config, const Backend& backend, const KvCacheOptions& options)
    : options_(options),
      head_dim_(config.head_dim),
      n_kv_heads_(config.n_kv_heads),
      row_bytes_(kv_row_bytes(config, options.type_k, options.type_v)) {
    const ggml_type type_k = to_ggml(options.type_k);
    const ggml_type type_v = to_ggml(options.type_v);
    check_type("-ctk", type_k, head_dim_);
    check_type("-ctv", type_v, head_dim_);
    if (options.layout == KvLayout::transposed_values && ggml_is_quantized(type_v)) {
        fail("-ctv ", ggml_type_name(type_v),
             ": expected flash attention with a quantised value cache on the CPU (-fa on), found "
             "it off");
    }
    KNAP_ASSERT(options.layout != KvLayout::tiled_keys ||
                    (type_k == GGML_TYPE_F16 && type_v == GGML_TYPE_F16 &&
                     head_dim_ % kKeyTile == 0 && options.capacity % kAttentionStep == 0),
                "whoever chooses the kernel's layout has checked that it fits");
    const auto n_layers = static_cast<std::size_t>(config.n_layers);
    context_.reset(ggml_init({2 * n_layers * ggml_tensor_overhead(), nullptr, true}));
    for (int layer = 0; layer < config.n_layers; ++layer) {
        ggml_tensor* k =
            ggml_new_tensor_3d(context_.get(), type_k, head_dim_, options.capacity, n_kv_heads_);
        ggml_tensor* v = options.layout == KvLayout::transposed_values
                             ? ggml_new_tensor_3d(context_.get(), type_v, options.capacity,
                                                  head_dim_, n_kv_heads_)
                             : ggml_new_tensor_3d(context_.get(), type_v, head_dim_,
                                                  options.capacity, n_kv_heads_);
        ggml_format_name(k, "cache.k.%d", layer);
        ggml_format_name(v, "cache.v.%d", layer);
        keys_.push_back(k);
        values_.push_back(v);
    }
    buffer_ = std::make_unique<ZeroedBuffer>(backend, context_.get());
}

KvCache::~KvCache() = default;

void KvCache::commit(int n_rows) {
    KNAP_ASSERT(n_rows >= committed_ && n_rows <= capacity(),
                "committing moves forward, within the cache");
    committed_ = n_rows;
}

void KvCache::truncate(int n_rows) {
    KNAP_ASSERT(n_rows >= 0 && n_rows <= committed_, "truncating moves backward");
    committed_ = n_rows;
}

void KvCache::copy_row(int from, int to) {
    KNAP_ASSERT(to >= committed_ && to < capacity() && from >= 0 && from < capacity(),
                "only scratch rows are overwritten");
    for (int layer = 0; layer < static_cast<int>(keys_.size()); ++layer) {
        for (const Half& half : {key_half(layer), value_half(layer)}) {
            for (std::int64_t run = 0; run < runs_per_row(half.spread); ++run) {
                std::memcpy(run_data(half, run, to), run_data(half, run, from), run_bytes(half));
            }
        }
    }
}

std::size_t KvCache::bytes() const {
    return buffer_->size();
}

std::size_t KvCache::bytes_per_row() const {
    return saved_row_bytes() * keys_.size();
}

KvCache::Half KvCache::key_half(int layer) const {
    return {keys_[static_cast<std::size_t>(layer)],
            options_.layout == KvLayout::tiled_keys ? Spread::tiled : Spread::run};
}

KvCache::Half KvCache::value_half(int layer) const {
    return {values_[static_cast<std::size_t>(layer)],
            options_.layout == KvLayout::transposed_values ? Spread::transposed : Spread::run};
}

std::int64_t KvCache::runs_per_row(Spread spread) const {
    return spread == Spread::run ? n_kv_heads_ : std::int64_t{n_kv_heads_} * head_dim_;
}

// Where run `run` of a row lies, counted in runs.
std::int64_t KvCache::run_index(Spread spread, std::int64_t run, int row) const {
    if (spread != Spread::tiled) {
        return run * capacity() + row;
    }
    const std::int64_t head = run / head_dim_;
    const std::int64_t channel = run % head_dim_;
    const std::int64_t in_tile = row % kKeyTile;
    return (head * capacity() + row - in_tile) * head_dim_ + channel * kKeyTile + in_tile;
}

std::size_t KvCache::run_bytes(const Half& half) const {
    return half.spread == Spread::run ? half.tensor->nb[1] : ggml_type_size(half.tensor->type);
}

std::byte* KvCache::run_data(const Half& half, std::int64_t run, int row) const {
    return static_cast<std::byte*>(half.tensor->data) +
           run_bytes(half) * static_cast<std::size_t>(run_index(half.spread, run, row));
}

KvSlots KvCache::new_slots(ggml_context* inputs, int max_rows) const {
    KvSlots slots{
        ggml_new_tensor_1d(inputs, GGML_TYPE_I64, max_rows * runs_per_row(key_half(0).spread)),
        ggml_new_tensor_1d(inputs, GGML_TYPE_I64, max_rows * runs_per_row(value_half(0).spread))};
    ggml_set_name(slots.keys, "in.key_slots");
    ggml_set_name(slots.values, "in.value_slots");
    return slots;
}

KvSlots KvCache::view_slots(ggml_context* ctx, const KvSlots& slots, int n_rows) const {
    return {ggml_view_1d(ctx, slots.keys, n_rows * runs_per_row(key_half(0).spread), 0),
            ggml_view_1d(ctx, slots.values, n_rows * runs_per_row(value_half(0).spread), 0)};
}

void KvCache::set_slots(const KvSlots& slots, int first_row, int n_rows) const {
    KNAP_ASSERT(first_row >= 0 && first_row + n_rows <= capacity(), "rows lie within the cache");
    const auto fill = [&](ggml_tensor* tensor, Spread spread) {
        auto* slot = static_cast<std::int64_t*>(tensor->data);
        for (int row = first_row; row < first_row + n_rows; ++row) {
            for (std::int64_t run = 0; run < runs_per_row(spread); ++run) {
                *slot++ = run_index(spread, run, row);
            }
        }
    };
    fill(slots.keys, key_half(0).spread);
    fill(slots.values, value_half(0).spread);
}

void KvCache::write(ggml_context* ctx,
                    ggml_cgraph* graph,
                    int layer,
                    ggml_tensor* keys,
                    ggml_tensor* values,
                    const KvSlots& slots) const {
    const auto write_runs = [&](const Half& half, ggml_tensor* rows, ggml_tensor* where) {
        const std::int64_t run = half.spread == Spread::run ? head_dim_ : 1;
        ggml_tensor* cache =
            ggml_reshape_2d(ctx, half.tensor, run, ggml_nelements(half.tensor) / run);
        rows = ggml_reshape_2d(ctx, rows, run, ggml_nelements(rows) / run);
        ggml_build_forward_expand(graph, ggml_set_rows(ctx, cache, rows, where));
    };
    write_runs(key_half(layer), keys, slots.keys);
    write_runs(value_half(layer), values, slots.values);
}

ggml_tensor* KvCache::view(ggml_context* ctx, const Half& half, int n_rows) const {
    ggml_tensor* cache = half.tensor;
    switch (half.spread) {
        case Spread::run:
            return ggml_view_3d(ctx, cache, head_dim_, n_rows, n_kv_heads_, cache->nb[1],
                                cache->nb[2], 0);
        case Spread::transposed:
            return ggml_view_3d(ctx, cache, n_rows, head_dim_, n_kv_heads_, cache->nb[1],
                                cache->nb[2], 0);
        case Spread::tiled:
            return cache;
    }
    return nullptr;
}

ggml_tensor* KvCache::keys(ggml_context* ctx, int layer, int n_rows) const {
    return view(ctx, key_half(layer), n_rows);
}

ggml_tensor* KvCache::values(ggml_context* ctx, int layer, int n_rows) const {
    return view(ctx, value_half(layer), n_rows);
}

std::size_t KvCache::saved_row_bytes() const {
    return row_bytes_;
}

// Calls visit(place in the cache, n_bytes) for every contiguous piece of the first `n_rows` rows of
// a layer, in the order in which they are saved.
template <typename Visit>
void KvCache::for_each_piece(int layer, int n_rows, Visit visit) const {
    for (const Half& half : {key_half(layer), value_half(layer)}) {
        for (std::int64_t head = 0; head < n_kv_heads_; ++head) {
            if (half.spread == Spread::run) {
                visit(run_data(half, head, 0), run_bytes(half) * static_cast<std::size_t>(n_rows));
                continue;
            }
            for (int row = 0; row < n_rows; ++row) {
                for (std::int64_t channel = 0; channel < head_dim_; ++channel) {
                    visit(run_data(half, head * head_dim_ + channel, row), run_bytes(half));
                }
            }
        }
    }
}

void KvCache::read_rows(int layer, int n_rows, std::byte* out) const {
    for_each_piece(layer, n_rows, [&](const std::byte* place, std::size_t n_bytes) {
        std::memcpy(out, place, n_bytes);
        out += n_bytes;
    });
}

void KvCache::write_rows(int layer, int n_rows, const std::byte* in) {
    for_each_piece(layer, n_rows, [&](std::byte* place, std::size_t n_bytes) {
        std::memcpy(place, in, n_bytes);
        in += n_bytes;
    });
}

}  // namespace knap
