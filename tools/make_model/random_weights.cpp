#include "tools/make_model/random_weights.h"

#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace knap {

namespace {

constexpr std::int64_t kTileValues = 256;  // a whole number of blocks of every type
constexpr std::uint64_t kPoolTiles = 4096;

std::uint64_t row_key(std::uint64_t seed, std::string_view name, std::int64_t row) {
    Fnv1a name_hash;
    name_hash.add(name);
    return mix_in(mix_in(seed, name_hash.value()), std::uint64_t(row));
}

// The sum of four 16-bit uniforms, scaled to mean 0 and variance 1: close to normal and never above
// 3.47 in magnitude. The sum is of integers, so a seed gives the same weights on every machine.
float near_normal(std::uint64_t bits) {
    constexpr float kInverseDeviation = 2.6429135e-5f;  // sqrt(3) / 65536
    const auto quarter = [bits](int i) { return std::int32_t((bits >> (16 * i)) & 0xFFFF); };
    const std::int32_t sum = quarter(0) + quarter(1) + quarter(2) + quarter(3);
    return float(sum - 2 * 0xFFFF) * kInverseDeviation;
}

void fill_values(std::span<float> values, std::uint64_t key, float mean, float deviation) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = mean + deviation * near_normal(mix_in(key, i));
    }
}

std::vector<float> make_values(const RandomTensor& tensor, std::uint64_t key) {
    if (!tensor.values.empty()) {
        return tensor.values;
    }
    std::vector<float> values(tensor.n_in);
    fill_values(values, key, tensor.mean, tensor.deviation);
    return values;
}

void quantise_row(ggml_type type, std::span<const float> values, std::byte* out) {
    ggml_quantize_chunk(type, values.data(), out, 0, 1, std::int64_t(values.size()), nullptr);
}

bool is_mosaic(const RandomTensor& tensor) {
    return tensor.is_matrix() && tensor.n_in >= RandomWeights::kMosaicRow &&
           tensor.n_in % kTileValues == 0;
}

std::vector<std::byte> make_pool(std::uint64_t seed, const RandomTensor& tensor) {
    const std::size_t tile_bytes = ggml_row_size(tensor.type, kTileValues);
    const std::string name = concat("pool.", ggml_type_name(tensor.type), ".", tensor.n_in);
    std::vector<std::byte> pool(kPoolTiles * tile_bytes);
    std::vector<float> values(kTileValues);
    for (std::uint64_t tile = 0; tile < kPoolTiles; ++tile) {
        fill_values(values, row_key(seed, name, std::int64_t(tile)), tensor.mean, tensor.deviation);
        quantise_row(tensor.type, values, pool.data() + tile * tile_bytes);
    }
    return pool;
}

void lay_tiles(std::span<const std::byte> pool, std::uint64_t key, std::span<std::byte> row) {
    const std::size_t tile_bytes = pool.size() / kPoolTiles;
    for (std::size_t i = 0; i * tile_bytes < row.size(); ++i) {
        const std::uint64_t tile = mix_in(key, i) % kPoolTiles;
        std::memcpy(&row[i * tile_bytes], &pool[tile * tile_bytes], tile_bytes);
    }
}

}  // namespace

RandomWeights::RandomWeights(std::uint64_t seed, const std::vector<RandomTensor>& tensors)
    : seed_(seed) {
    for (const RandomTensor& tensor : tensors) {
        const PoolKey key{tensor.type, tensor.n_in};
        if (is_mosaic(tensor) && !pools_.contains(key)) {
            pools_.emplace(key, make_pool(seed, tensor));
        }
    }
}

void RandomWeights::fill_rows(const RandomTensor& tensor,
                              std::int64_t first_row,
                              std::span<std::byte> out) const {
    const std::size_t row_bytes = ggml_row_size(tensor.type, tensor.n_in);
    KNAP_ASSERT(out.size() % row_bytes == 0, "chunks hold whole rows");
    for (; !out.empty(); out = out.subspan(row_bytes)) {
        const std::uint64_t key = row_key(seed_, tensor.name, first_row++);
        if (is_mosaic(tensor)) {
            lay_tiles(pools_.at({tensor.type, tensor.n_in}), key, out.first(row_bytes));
        } else {
            quantise_row(tensor.type, make_values(tensor, key), out.data());
        }
    }
}

}  // namespace knap
