#include "graph/cache/ggml_kv_store.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "device/backend.h"
#include "device/host_images.h"
#include "device/zeroed_buffer.h"
#include "graph/cache/row_copier.h"
#include "kernels/attention/attention.h"

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

std::vector<ggml_tensor*> tensors_of(ggml_context* context) {
    std::vector<ggml_tensor*> tensors;
    for (auto* tensor = ggml_get_first_tensor(context); tensor != nullptr;
         tensor = ggml_get_next_tensor(context, tensor)) {
        tensors.push_back(tensor);
    }
    return tensors;
}

}  // namespace

std::size_t kv_row_bytes(const ModelConfig& config, const CacheTypes& types, KvLayout layout) {
    if (layout == KvLayout::tiled_int8) {
        const auto scale_bytes = static_cast<int>(sizeof(ggml_fp16_t));
        return 2 * stored_bytes(GGML_TYPE_I8, config.n_kv_heads * (config.head_dim + scale_bytes));
    }
    return stored_bytes(to_ggml(types.keys), config.n_embd_kv()) +
           stored_bytes(to_ggml(types.values), config.n_embd_kv());
}

GgmlKvStore::GgmlKvStore(const ModelConfig& config,
                         const LayerShare& share,
                         const KvStoreShape& shape)
    : share_(share),
      shape_(shape),
      head_dim_(config.head_dim),
      n_kv_heads_(config.n_kv_heads),
      row_bytes_(kv_row_bytes(config, shape.types, shape.layout)),
      repeats_(static_cast<std::size_t>(shape.pages.n_pages)) {
    check_types();
    const auto n_layers = static_cast<std::size_t>(share.n_layers());
    context_.reset(ggml_init({4 * n_layers * ggml_tensor_overhead(), nullptr, true}));
    for (int i = share.first_layer; i < share.end_layer; ++i) {
        layers_.push_back(new_layer());
        ggml_format_name(tensors(i).keys, "cache.k.%d", i);
        ggml_format_name(tensors(i).values, "cache.v.%d", i);
    }
    buffer_ = is_tiled(shape.layout) ? place_in_blocks()
                                     : std::make_unique<ZeroedBuffer>(backend(), context_.get());
}

GgmlKvStore::~GgmlKvStore() = default;

void GgmlKvStore::check_types() const {
    const ggml_type type_k = to_ggml(shape_.types.keys);
    const ggml_type type_v = to_ggml(shape_.types.values);
    if (is_tiled(shape_.layout)) {
        const ggml_type type =
            shape_.layout == KvLayout::tiled_int8 ? GGML_TYPE_Q8_0 : GGML_TYPE_F16;
        KNAP_ASSERT(type_k == type && type_v == type && head_dim_ % kKeyTile == 0 &&
                        page_rows() % kAttentionChunk == 0,
                    "whoever chooses the kernel's layout has checked that it fits");
        return;
    }
    if (!backend().is_host() && (type_k != GGML_TYPE_F16 || type_v != GGML_TYPE_F16)) {
        fail("`.cache_type_k` ", ggml_type_name(type_k), ", `.cache_type_v` ",
             ggml_type_name(type_v), ": expected f16 on the device ",
             ggml_backend_dev_name(backend().device()));
    }
    check_type("`.cache_type_k`", type_k, head_dim_);
    check_type("`.cache_type_v`", type_v, head_dim_);
    if (shape_.layout == KvLayout::transposed_values && ggml_is_quantized(type_v)) {
        fail("`.cache_type_v` ", ggml_type_name(type_v),
             ": expected `.flash_attention` on, or `.cache_type_k` q8_0 as well where knap's own "
             "kernel runs, found neither");
    }
}

GgmlKvStore::Layer GgmlKvStore::new_layer() const {
    const ggml_type type_k = to_ggml(shape_.types.keys);
    const ggml_type type_v = to_ggml(shape_.types.values);
    switch (shape_.layout) {
        case KvLayout::rows:
            return {.keys = {new_rows(type_k)}, .values = {new_rows(type_v)}};
        case KvLayout::transposed_values:
            return {.keys = {new_rows(type_k)}, .values = {new_transposed(type_v)}};
        case KvLayout::tiled_keys:
            return {.keys = {new_tiled(type_k, head_dim_, 1, kKeyTile)},
                    .values = {new_tiled(type_v, head_dim_, head_dim_, 1)}};
        case KvLayout::tiled_int8:
            break;
    }
    const auto new_scales = [&] { return new_tiled(GGML_TYPE_F16, 1, 1, 1); };
    return {.keys = {new_tiled(GGML_TYPE_I8, head_dim_, 4, kKeyTile), new_scales()},
            .values = {new_tiled(GGML_TYPE_I8, head_dim_, 1, kValueTile), new_scales()}};
}

RowFormat GgmlKvStore::new_rows(ggml_type type) const {
    return {.tensor = ggml_new_tensor_4d(context_.get(), type, head_dim_, page_rows(), n_kv_heads_,
                                         shape_.pages.n_pages),
            .unit_bytes = static_cast<std::int64_t>(stored_bytes(type, head_dim_)),
            .n_units = 1,
            .tile = 1,
            .block = page_rows()};
}

RowFormat GgmlKvStore::new_transposed(ggml_type type) const {
    return {.tensor = ggml_new_tensor_4d(context_.get(), type, page_rows(), head_dim_, n_kv_heads_,
                                         shape_.pages.n_pages),
            .unit_bytes = static_cast<std::int64_t>(ggml_type_size(type)),
            .n_units = head_dim_,
            .tile = page_rows(),
            .block = page_rows()};
}

// `width` numbers of each row, `unit` of them a unit.
RowFormat GgmlKvStore::new_tiled(ggml_type type, int width, int unit, int tile) const {
    return {.tensor = ggml_new_tensor_4d(context_.get(), type, width, kAttentionChunk, n_kv_heads_,
                                         total_rows() / kAttentionChunk),
            .unit_bytes = static_cast<std::int64_t>(stored_bytes(type, unit)),
            .n_units = width / unit,
            .tile = tile,
            .block = kAttentionChunk};
}

// A block of rows of every layer lies together, so that memory is taken as the context grows, in
// large pages.
std::unique_ptr<ZeroedBuffer> GgmlKvStore::place_in_blocks() const {
    const std::vector<ggml_tensor*> all = tensors_of(context_.get());
    std::size_t block_bytes = 0;
    for (const ggml_tensor* tensor : all) {
        block_bytes += tensor->nb[3];
    }
    const auto n_blocks = static_cast<std::size_t>(all.front()->ne[3]);
    auto buffer = std::make_unique<ZeroedBuffer>(backend(), block_bytes * n_blocks);
    std::size_t offset = 0;
    for (ggml_tensor* tensor : all) {
        const std::size_t bytes = std::exchange(tensor->nb[3], block_bytes);
        buffer->place(tensor, offset);
        offset += bytes;
    }
    return buffer;
}

void GgmlKvStore::copy_rows(int from, int to, int n_rows) {
    if (backend().is_host()) {
        copy_rows_on_host(from, to, n_rows);
        return;
    }
    expect_write(to / page_rows(), to % page_rows(), n_rows);
    copier(n_rows).copy(from, to);
}

bool GgmlKvStore::copies_beside_passes() const {
    return backend().is_host();
}

void GgmlKvStore::repeat_first_rows(PageId page, int n_rows, int at) {
    KNAP_ASSERT(!backend().is_host() && at >= n_rows && at + n_rows <= page_rows(),
                "there is room for the copy behind the rows");
    const Repeat wanted{.n_rows = n_rows, .at = at};
    Repeat& present = repeats_[static_cast<std::size_t>(page)];
    if (present != wanted) {
        const int first = page * page_rows();
        copier(n_rows).copy(first, first + at);
        present = wanted;
    }
}

void GgmlKvStore::expect_write(PageId page, int first, int n_rows) {
    Repeat& repeat = repeats_[static_cast<std::size_t>(page)];
    const auto overlaps = [&](int begin) {
        return first < begin + repeat.n_rows && begin < first + n_rows;
    };
    if (overlaps(0) || overlaps(repeat.at)) {
        repeat = {};
    }
}

RowCopier& GgmlKvStore::copier(int n_rows) {
    const auto found = std::ranges::find(copiers_, n_rows, &RowCopier::n_rows);
    if (found != copiers_.end()) {
        return **found;
    }
    std::vector<RowFormat> all;
    for (const Layer& layer : layers_) {
        std::ranges::copy(layer.keys, std::back_inserter(all));
        std::ranges::copy(layer.values, std::back_inserter(all));
    }
    copiers_.push_back(std::make_unique<RowCopier>(
        backend(), all, RowCopier::Size{.n_rows = n_rows, .n_kv_heads = n_kv_heads_}));
    return *copiers_.back();
}

void GgmlKvStore::copy_rows_on_host(int from, int to, int n_rows) const {
    const auto copy = [&](const RowFormat& format) {
        auto* data = static_cast<std::byte*>(format.tensor->data);
        for (int head = 0; head < n_kv_heads_; ++head) {
            for (int row = 0; row < n_rows; ++row) {
                for (std::int64_t unit = 0; unit < format.n_units; ++unit) {
                    std::memcpy(data + format.offset(head, to + row, unit),
                                data + format.offset(head, from + row, unit),
                                static_cast<std::size_t>(format.unit_bytes));
                }
            }
        }
    };
    for (const Layer& layer : layers_) {
        std::ranges::for_each(layer.keys, copy);
        std::ranges::for_each(layer.values, copy);
    }
}

std::size_t GgmlKvStore::bytes() const {
    return buffer_->size();
}

const GgmlKvStore::Layer& GgmlKvStore::stored(int layer) const {
    KNAP_ASSERT(share_.has(layer), "a layer of this store");
    return layers_[static_cast<std::size_t>(layer - share_.first_layer)];
}

KvTensors GgmlKvStore::tensors(int layer) const {
    const auto& [key_half, value_half] = stored(layer);
    const auto scales = [](const Half& half) { return half.size() > 1 ? half[1].tensor : nullptr; };
    return {.keys = key_half[0].tensor,
            .values = value_half[0].tensor,
            .key_scales = scales(key_half),
            .value_scales = scales(value_half)};
}

KvSlots GgmlKvStore::new_slots(ggml_context* inputs, int max_rows) const {
    if (is_tiled(shape_.layout)) {
        ggml_tensor* rows = ggml_new_tensor_1d(inputs, GGML_TYPE_I32, max_rows);
        return {.rows = ggml_set_name(rows, "in.cache_rows")};
    }
    const auto new_half = [&](const Half& half, const char* name) {
        const std::int64_t n_slots = max_rows * half[0].n_units * n_kv_heads_;
        return ggml_set_name(ggml_new_tensor_1d(inputs, GGML_TYPE_I64, n_slots), name);
    };
    return {.keys = new_half(layers_[0].keys, "in.key_slots"),
            .values = new_half(layers_[0].values, "in.value_slots")};
}

KvSlots GgmlKvStore::view_slots(ggml_context* ctx,
                                const KvSlots& slots,
                                int n_rows,
                                int first) const {
    const auto view = [&](ggml_tensor* all, std::int64_t n_per_row) {
        return ggml_view_1d(ctx, all, n_rows * n_per_row,
                            static_cast<std::size_t>(first * n_per_row) * all->nb[0]);
    };
    if (is_tiled(shape_.layout)) {
        return {.rows = view(slots.rows, 1)};
    }
    const auto per_row = [&](const Half& half) { return half[0].n_units * n_kv_heads_; };
    return {.keys = view(slots.keys, per_row(layers_[0].keys)),
            .values = view(slots.values, per_row(layers_[0].values))};
}

void GgmlKvStore::fill_slots(std::span<std::int64_t> keys,
                             std::span<std::int64_t> values,
                             std::span<const std::int32_t> rows) const {
    const auto fill = [&](const RowFormat& format, std::span<std::int64_t> slots) {
        auto slot = slots.begin();
        for (const std::int32_t row : rows) {
            for (int head = 0; head < n_kv_heads_; ++head) {
                for (std::int64_t unit = 0; unit < format.n_units; ++unit) {
                    *slot++ = format.index(head, row, unit);
                }
            }
        }
    };
    fill(layers_[0].keys[0], keys);
    fill(layers_[0].values[0], values);
}

void GgmlKvStore::write(ggml_context* ctx,
                        ggml_cgraph* graph,
                        int layer,
                        ggml_tensor* keys,
                        ggml_tensor* values,
                        const KvSlots& slots) const {
    const auto write_units = [&](const RowFormat& format, ggml_tensor* rows, ggml_tensor* where) {
        const std::int64_t unit = head_dim_ / format.n_units;
        ggml_tensor* cache =
            ggml_reshape_2d(ctx, format.tensor, unit, ggml_nelements(format.tensor) / unit);
        rows = ggml_reshape_2d(ctx, rows, unit, ggml_nelements(rows) / unit);
        ggml_build_forward_expand(graph, ggml_set_rows(ctx, cache, rows, where));
    };
    write_units(stored(layer).keys[0], keys, slots.keys);
    write_units(stored(layer).values[0], values, slots.values);
}

ggml_tensor* GgmlKvStore::keys(ggml_context* ctx, int layer, PageId page, int n_rows) const {
    ggml_tensor* cache = tensors(layer).keys;
    return ggml_view_3d(ctx, cache, head_dim_, n_rows, n_kv_heads_, cache->nb[1], cache->nb[2],
                        static_cast<std::size_t>(page) * cache->nb[3]);
}

ggml_tensor* GgmlKvStore::values(ggml_context* ctx, int layer, PageId page, int n_rows) const {
    ggml_tensor* cache = tensors(layer).values;
    const bool is_transposed = shape_.layout == KvLayout::transposed_values;
    return ggml_view_3d(ctx, cache, is_transposed ? n_rows : head_dim_,
                        is_transposed ? head_dim_ : n_rows, n_kv_heads_, cache->nb[1], cache->nb[2],
                        static_cast<std::size_t>(page) * cache->nb[3]);
}

// Calls visit(format, offset in its tensor) for every unit of rows of a layer, in the order in
// which they are saved.
template <typename Visit>
void GgmlKvStore::for_each_piece(int layer, std::span<const StoredRows> rows, Visit visit) const {
    const auto& [key_half, value_half] = stored(layer);
    const auto visit_row = [&](const Half& half, int head, int row) {
        for (const RowFormat& format : half) {
            for (std::int64_t unit = 0; unit < format.n_units; ++unit) {
                visit(format, format.offset(head, row, unit));
            }
        }
    };
    for (const StoredRows& range : rows) {
        for (const Half* half : {&key_half, &value_half}) {
            for (int head = 0; head < n_kv_heads_; ++head) {
                for (int i = 0; i < range.n_rows; ++i) {
                    visit_row(*half, head, range.first + i);
                }
            }
        }
    }
}

// The tensors of a layer as the program sees them.
HostImages GgmlKvStore::images(int layer) const {
    const auto& [key_half, value_half] = stored(layer);
    HostImages images(backend());
    for (const Half* half : {&key_half, &value_half}) {
        for (const RowFormat& format : *half) {
            images.add(format.tensor);
        }
    }
    return images;
}

std::uint64_t GgmlKvStore::saved_format() const {
    const bool is_int8 = shape_.layout == KvLayout::tiled_int8;  // other numbers than ggml's q8_0
    return static_cast<std::uint64_t>(shape_.types.keys) |
           static_cast<std::uint64_t>(shape_.types.values) << 8 |
           static_cast<std::uint64_t>(is_int8) << 16;
}

void GgmlKvStore::export_rows(int layer, std::span<const StoredRows> rows, std::byte* out) const {
    HostImages images = this->images(layer);
    for_each_piece(layer, rows, [&](const RowFormat& format, std::int64_t offset) {
        std::memcpy(out, images.data(format.tensor) + offset,
                    static_cast<std::size_t>(format.unit_bytes));
        out += format.unit_bytes;
    });
}

void GgmlKvStore::import_rows(int layer, std::span<const StoredRows> rows, const std::byte* in) {
    for (const StoredRows& range : rows) {
        expect_write(range.first / page_rows(), range.first % page_rows(), range.n_rows);
    }
    HostImages images = this->images(layer);
    for_each_piece(layer, rows, [&](const RowFormat& format, std::int64_t offset) {
        std::memcpy(images.data(format.tensor) + offset, in,
                    static_cast<std::size_t>(format.unit_bytes));
        in += format.unit_bytes;
    });
    images.store();
}

}  // namespace knap
