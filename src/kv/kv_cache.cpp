#include "kv/kv_cache.h"

#include <algorithm>

#include "base/error.h"

namespace knap {

KvCache::KvCache(const ModelConfig& config, Backend& backend, const KvCacheOptions& options)
    : KvCache(config, LayerMap(backend, config.n_layers), std::span(&options, 1)) {}

KvCache::KvCache(const ModelConfig& config,
                 const LayerMap& layers,
                 std::span<const KvCacheOptions> options) {
    KNAP_ASSERT(options.size() == layers.shares().size() && layers.n_layers() == config.n_layers,
                "options of every share, shares of every layer");
    for (std::size_t i = 0; i < options.size(); ++i) {
        stores_.push_back(std::make_unique<KvStore>(config, layers.shares()[i], options[i]));
        KNAP_ASSERT(stores_[i]->capacity() == capacity() &&
                        stores_[i]->saved_row_bytes() == saved_row_bytes(),
                    "the same rows in every layer");
    }
}

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
    for (const auto& store : stores_) {
        store->copy_row(from, to);
    }
}

std::size_t KvCache::bytes() const {
    std::size_t n_bytes = 0;
    for (const auto& store : stores_) {
        n_bytes += store->bytes();
    }
    return n_bytes;
}

KvStore& KvCache::store(int layer) const {
    const auto store = std::ranges::find_if(
        stores_, [layer](const auto& candidate) { return candidate->share().has(layer); });
    KNAP_ASSERT(store != stores_.end(), "a layer of the model");
    return **store;
}

const KvStore& KvCache::of_layer(int layer) const {
    return store(layer);
}

std::size_t KvCache::saved_row_bytes() const {
    return stores_.front()->saved_row_bytes();
}

void KvCache::read_rows(int layer, int n_rows, std::byte* out) const {
    store(layer).read_rows(layer, n_rows, out);
}

void KvCache::write_rows(int layer, int n_rows, const std::byte* in) {
    store(layer).write_rows(layer, n_rows, in);
}

}  // namespace knap
