#include "kv/kv_cache.h"

#include "ggml-backend.h"

#include "base/error.h"
#include "device/backend.h"
#include "device/zeroed_buffer.h"

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
        fail(flag, " ", ggml_type_name(type), ": expected a model whose head size is a multiple of ",
             ggml_blck_size(type), ", found ", head_dim);
    }
}

} // namespace

KvCache::KvCache(const ModelConfig& config, const Backend& backend, const KvCacheOptions& options)
    : options_(options), head_dim_(config.head_dim), n_kv_heads_(config.n_kv_heads) {
    const ggml_type type_k = to_ggml(options.type_k);
    const ggml_type type_v = to_ggml(options.type_v);
    check_type("-ctk", type_k, head_dim_);
    check_type("-ctv", type_v, head_dim_);
    if (options.transposed_values && ggml_is_quantized(type_v)) {
        fail("-ctv ", ggml_type_name(type_v),
             ": expected flash attention with a quantised value cache on the CPU (-fa on), found it off");
    }
    const auto n_layers = static_cast<std::size_t>(config.n_layers);
    context_.reset(ggml_init({2 * n_layers * ggml_tensor_overhead(), nullptr, true}));
    const int n_embd_kv = config.n_embd_kv();
    for (int layer = 0; layer < config.n_layers; ++layer) {
        ggml_tensor* k = ggml_new_tensor_2d(context_.get(), type_k, n_embd_kv, options.capacity);
        ggml_tensor* v = options.transposed_values
                             ? ggml_new_tensor_2d(context_.get(), type_v, options.capacity, n_embd_kv)
                             : ggml_new_tensor_2d(context_.get(), type_v, n_embd_kv, options.capacity);
        ggml_format_name(k, "cache.k.%d", layer);
        ggml_format_name(v, "cache.v.%d", layer);
        keys_.push_back(k);
        values_.push_back(v);
    }
    buffer_ = std::make_unique<ZeroedBuffer>(backend, context_.get());
}

KvCache::~KvCache() = default;

void KvCache::commit(int n_rows) {
    KNAP_ASSERT(n_rows >= committed_ && n_rows <= capacity(), "committing moves forward, within the cache");
    committed_ = n_rows;
}

void KvCache::truncate(int n_rows) {
    KNAP_ASSERT(n_rows >= 0 && n_rows <= committed_, "truncating moves backward");
    committed_ = n_rows;
}

std::size_t KvCache::bytes() const { return buffer_->size(); }

std::size_t KvCache::bytes_per_row() const { return saved_row_bytes() * keys_.size(); }

KvSlots KvCache::new_slots(ggml_context* inputs, int max_rows) const {
    const std::int64_t per_value_row = options_.transposed_values ? n_kv_heads_ * head_dim_ : 1;
    KvSlots slots{ggml_new_tensor_1d(inputs, GGML_TYPE_I64, max_rows),
                  ggml_new_tensor_1d(inputs, GGML_TYPE_I64, max_rows * per_value_row)};
    ggml_set_name(slots.keys, "in.key_slots");
    ggml_set_name(slots.values, "in.value_slots");
    return slots;
}

KvSlots KvCache::view_slots(ggml_context* ctx, const KvSlots& slots, int n_rows) const {
    const std::int64_t per_value_row = options_.transposed_values ? n_kv_heads_ * head_dim_ : 1;
    return {ggml_view_1d(ctx, slots.keys, n_rows, 0),
            ggml_view_1d(ctx, slots.values, n_rows * per_value_row, 0)};
}

void KvCache::set_slots(const KvSlots& slots, int first_row, int n_rows) const {
    KNAP_ASSERT(first_row >= 0 && first_row + n_rows <= capacity(), "rows lie within the cache");
    auto* key_slots = static_cast<std::int64_t*>(slots.keys->data);
    auto* value_slots = static_cast<std::int64_t*>(slots.values->data);
    const int n_embd_kv = n_kv_heads_ * head_dim_;
    for (int i = 0; i < n_rows; ++i) {
        key_slots[i] = first_row + i;
        if (!options_.transposed_values) {
            value_slots[i] = first_row + i;
            continue;
        }
        for (std::int64_t channel = 0; channel < n_embd_kv; ++channel) {
            *value_slots++ = channel * capacity() + first_row + i;
        }
    }
}

void KvCache::write(ggml_context* ctx, ggml_cgraph* graph, int layer, ggml_tensor* keys,
                    ggml_tensor* values, const KvSlots& slots) const {
    ggml_build_forward_expand(graph, ggml_set_rows(ctx, layer_keys(layer), keys, slots.keys));
    ggml_tensor* cache = layer_values(layer);
    if (options_.transposed_values) {
        // Every channel of a row goes to a place of its own: rows of one element.
        cache = ggml_reshape_2d(ctx, cache, 1, ggml_nelements(cache));
        values = ggml_reshape_2d(ctx, values, 1, ggml_nelements(values));
    }
    ggml_build_forward_expand(graph, ggml_set_rows(ctx, cache, values, slots.values));
}

ggml_tensor* KvCache::keys(ggml_context* ctx, int layer, int n_rows) const {
    ggml_tensor* cache = layer_keys(layer);
    return ggml_view_3d(ctx, cache, head_dim_, n_rows, n_kv_heads_, cache->nb[1],
                        ggml_row_size(cache->type, head_dim_), 0);
}

ggml_tensor* KvCache::values(ggml_context* ctx, int layer, int n_rows) const {
    ggml_tensor* cache = layer_values(layer);
    if (options_.transposed_values) {
        return ggml_view_3d(ctx, cache, n_rows, head_dim_, n_kv_heads_, cache->nb[1],
                            cache->nb[1] * static_cast<std::size_t>(head_dim_), 0);
    }
    return ggml_view_3d(ctx, cache, head_dim_, n_rows, n_kv_heads_, cache->nb[1],
                        ggml_row_size(cache->type, head_dim_), 0);
}

std::size_t KvCache::saved_row_bytes() const {
    const std::int64_t n_embd_kv = std::int64_t{n_kv_heads_} * head_dim_;
    return ggml_row_size(to_ggml(options_.type_k), n_embd_kv) +
           ggml_row_size(to_ggml(options_.type_v), n_embd_kv);
}

// Calls visit(tensor, offset, n_bytes) for every contiguous piece of the first `n_rows` rows of a layer.
template <typename Visit>
void KvCache::for_each_piece(int layer, int n_rows, Visit visit) const {
    ggml_tensor* k = layer_keys(layer);
    visit(k, std::size_t{0}, k->nb[1] * static_cast<std::size_t>(n_rows));
    ggml_tensor* v = layer_values(layer);
    if (!options_.transposed_values) {
        visit(v, std::size_t{0}, v->nb[1] * static_cast<std::size_t>(n_rows));
        return;
    }
    for (std::int64_t channel = 0; channel < v->ne[1]; ++channel) {
        visit(v, v->nb[1] * static_cast<std::size_t>(channel), v->nb[0] * static_cast<std::size_t>(n_rows));
    }
}

void KvCache::read_rows(int layer, int n_rows, std::byte* out) const {
    for_each_piece(layer, n_rows, [&](ggml_tensor* tensor, std::size_t offset, std::size_t n_bytes) {
        ggml_backend_tensor_get(tensor, out, offset, n_bytes);
        out += n_bytes;
    });
}

void KvCache::write_rows(int layer, int n_rows, const std::byte* in) {
    for_each_piece(layer, n_rows, [&](ggml_tensor* tensor, std::size_t offset, std::size_t n_bytes) {
        ggml_backend_tensor_set(tensor, in, offset, n_bytes);
        in += n_bytes;
    });
}

} // namespace knap
