// In builds without CUDA the store is in host memory (kernels/cuda/no_cuda.cpp).
#include "cuda/cuda_kv_store.h"

#include <ostream>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "device/backend.h"
#include "graph/cache/ggml_kv_store.h"
#include "kernels/cuda/cache_pages.h"

namespace knap::test::cuda_kv_store_test {
namespace {

constexpr PageShape kPages{.page_rows = kCudaPageRows, .n_pages = 5};
constexpr LayerRange kLayers{.begin = 1, .end = 4};

ModelConfig some_model(int head_dim) {
    ModelConfig config;
    config.n_layers = 4;
    config.n_heads = 6;
    config.n_kv_heads = 3;
    config.head_dim = head_dim;
    return config;
}

std::vector<std::byte> random_bytes(std::size_t n_bytes, unsigned seed) {
    std::mt19937 engine(seed);
    std::vector<std::byte> bytes(n_bytes);
    for (std::byte& byte : bytes) {
        byte = static_cast<std::byte>(engine());
    }
    return bytes;
}

struct Case {
    CacheTypes types{};
    int head_dim = 64;
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << to_string(c.types.keys) << '/' << to_string(c.types.values) << '/' << c.head_dim;
}

// The store and one of ggml's on the CPU with the same rows.
struct Stores {
    explicit Stores(const Case& c)
        : config(some_model(c.head_dim)),
          ours(config, kLayers, device(), c.types, kPages),
          theirs(config,
                 {.backend = &cpu, .first_layer = kLayers.begin, .end_layer = kLayers.end},
                 {.types = c.types, .layout = KvLayout::rows, .pages = kPages}) {}

    ModelConfig config;
    Backend cpu{1};
    CudaKvStore ours;
    GgmlKvStore theirs;

    // A build with CUDA needs a GPU.
    static CudaDevice device() { return find_cuda_device("CUDA0"); }
    static bool is_usable() { return !has_cuda_kernels() || device().index >= 0; }

    std::size_t bytes_of(std::span<const StoredRows> rows) const {
        std::size_t n_rows = 0;
        for (const StoredRows& range : rows) {
            n_rows += static_cast<std::size_t>(range.n_rows);
        }
        return n_rows * ours.saved_row_bytes();
    }
    std::vector<std::byte> exported(const KvStore& store,
                                    int layer,
                                    std::vector<StoredRows> rows) const {
        std::vector<std::byte> bytes(bytes_of(rows));
        store.export_rows(layer, rows, bytes.data());
        return bytes;
    }
    void fill() {
        const std::vector<StoredRows> all{{0, kPages.page_rows * kPages.n_pages}};
        for (int layer = kLayers.begin; layer < kLayers.end; ++layer) {
            const auto bytes = random_bytes(bytes_of(all), static_cast<unsigned>(layer));
            ours.import_rows(layer, all, bytes.data());
            theirs.import_rows(layer, all, bytes.data());
        }
    }
    void expect_equal(const std::vector<StoredRows>& rows) const {
        for (int layer = kLayers.begin; layer < kLayers.end; ++layer) {
            EXPECT_EQ(exported(ours, layer, rows), exported(theirs, layer, rows)) << layer;
        }
    }
};

class CudaKvStoreTest : public ::testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        if (!Stores::is_usable()) {
            GTEST_SKIP() << "no NVIDIA GPU";
        }
    }
};

TEST_P(CudaKvStoreTest, SavesTheBytesThatGgmlsStoreSaves) {
    Stores stores(GetParam());
    EXPECT_EQ(stores.ours.saved_format(), stores.theirs.saved_format());
    EXPECT_EQ(stores.ours.saved_row_bytes(), stores.theirs.saved_row_bytes());
    const bool has_spare_scales = GetParam().head_dim == 96;
    EXPECT_EQ(stores.ours.bytes(), stores.theirs.bytes() * (has_spare_scales ? 52 : 51) / 51);
    stores.fill();
    stores.expect_equal({{0, 1280}});
    stores.expect_equal({{3, 1}});
    stores.expect_equal({{200, 400}, {0, 5}, {1024, 256}});
}

TEST_P(CudaKvStoreTest, StartsAsZeros) {
    Stores stores(GetParam());
    stores.expect_equal({{0, 1280}});
}

TEST_P(CudaKvStoreTest, TakesRowsInAnyRanges) {
    Stores stores(GetParam());
    const std::vector<StoredRows> rows{{250, 20}, {1000, 280}, {0, 1}};
    const auto bytes = random_bytes(stores.bytes_of(rows), 7);
    stores.ours.import_rows(2, rows, bytes.data());
    stores.theirs.import_rows(2, rows, bytes.data());
    EXPECT_EQ(stores.exported(stores.ours, 2, rows), bytes);
    stores.expect_equal({{0, 1280}});
}

TEST_P(CudaKvStoreTest, CopiesRowsWithinAndAcrossPages) {
    Stores stores(GetParam());
    stores.fill();
    struct Copy {
        int from, to, n_rows;
    };
    for (const auto& [from, to, n_rows] :
         {Copy{7, 9, 2}, Copy{0, 256, 256}, Copy{100, 700, 500}, Copy{1279, 0, 1}}) {
        stores.ours.copy_rows(from, to, n_rows);
        stores.theirs.copy_rows(from, to, n_rows);
        stores.expect_equal({{0, 1280}});
    }
}

// What the kernels add to the address of a layer's first row.
std::size_t head_row(const ModelConfig& config, int row, int kv_head) {
    return static_cast<std::size_t>(row / kCudaPageRows * config.n_kv_heads + kv_head) *
               kCudaPageRows +
           static_cast<std::size_t>(row % kCudaPageRows);
}

TEST_P(CudaKvStoreTest, KeepsRowsWhereTheKernelsLook) {
    if (has_cuda_kernels()) {
        GTEST_SKIP() << "the store is in a GPU's memory";
    }
    Stores stores(GetParam());
    stores.fill();
    const CacheTypes& types = GetParam().types;
    const auto head_dim = static_cast<std::size_t>(GetParam().head_dim);
    const auto n_places = static_cast<std::size_t>(scale_places(GetParam().head_dim));
    CudaLayer layer;
    stores.ours.place(2, layer);
    EXPECT_EQ(layer.key_scales == nullptr, types.keys == CacheType::f16);
    EXPECT_EQ(layer.value_scales == nullptr, types.values == CacheType::f16);
    for (const int row : {0, 300, 1279}) {
        std::vector<std::byte> expected;
        for (const bool is_values : {false, true}) {
            const bool is_int8 = (is_values ? types.values : types.keys) == CacheType::q8_0;
            const std::uint8_t* numbers = is_values ? layer.values : layer.keys;
            const std::uint16_t* scales = is_values ? layer.value_scales : layer.key_scales;
            const auto add = [&](const void* from, std::size_t n) {
                const auto* bytes = static_cast<const std::byte*>(from);
                expected.insert(expected.end(), bytes, bytes + n);
            };
            for (int head = 0; head < stores.config.n_kv_heads; ++head) {
                const std::size_t at = head_row(stores.config, row, head);
                if (!is_int8) {
                    add(numbers + at * head_dim * 2, head_dim * 2);
                }
                for (std::size_t i = 0; is_int8 && i < head_dim / kCacheBlock; ++i) {
                    add(scales + at * n_places + i, 2);
                    add(numbers + at * head_dim + i * kCacheBlock, kCacheBlock);
                }
            }
        }
        EXPECT_EQ(stores.exported(stores.ours, 2, {{row, 1}}), expected) << "row " << row;
    }
}

constexpr CacheTypes kInt8{CacheType::q8_0, CacheType::q8_0};
INSTANTIATE_TEST_SUITE_P(Types,
                         CudaKvStoreTest,
                         ::testing::Values(Case{},
                                           Case{kInt8},
                                           Case{kInt8, 96},
                                           Case{kInt8, 256},
                                           Case{{CacheType::q8_0, CacheType::f16}, 128},
                                           Case{{CacheType::f16, CacheType::q8_0}, 128}));

}  // namespace
}  // namespace knap::test::cuda_kv_store_test
