// In builds without CUDA the store is in host memory (kernels/cuda/no_cuda.cpp).
#include "cuda/cuda_kv_store.h"

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

ModelConfig some_model() {
    ModelConfig config;
    config.n_layers = 4;
    config.n_heads = 6;
    config.n_kv_heads = 3;
    config.head_dim = 32;
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

// The store and one of ggml's on the CPU with the same rows.
struct Stores {
    ModelConfig config = some_model();
    Backend cpu{1};
    CudaKvStore ours{config, kLayers, device(), kPages};
    GgmlKvStore theirs{config,
                       {.backend = &cpu, .first_layer = kLayers.begin, .end_layer = kLayers.end},
                       {.layout = KvLayout::rows, .pages = kPages}};

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

class CudaKvStoreTest : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!Stores::is_usable()) {
            GTEST_SKIP() << "no NVIDIA GPU";
        }
    }
};

TEST_F(CudaKvStoreTest, SavesTheBytesThatGgmlsStoreSaves) {
    Stores stores;
    EXPECT_EQ(stores.ours.saved_format(), stores.theirs.saved_format());
    EXPECT_EQ(stores.ours.saved_row_bytes(), stores.theirs.saved_row_bytes());
    EXPECT_EQ(stores.ours.bytes(), stores.theirs.bytes());
    stores.fill();
    stores.expect_equal({{0, 1280}});
    stores.expect_equal({{3, 1}});
    stores.expect_equal({{200, 400}, {0, 5}, {1024, 256}});
}

TEST_F(CudaKvStoreTest, StartsAsZeros) {
    Stores stores;
    stores.expect_equal({{0, 1280}});
}

TEST_F(CudaKvStoreTest, TakesRowsInAnyRanges) {
    Stores stores;
    const std::vector<StoredRows> rows{{250, 20}, {1000, 280}, {0, 1}};
    const auto bytes = random_bytes(stores.bytes_of(rows), 7);
    stores.ours.import_rows(2, rows, bytes.data());
    stores.theirs.import_rows(2, rows, bytes.data());
    EXPECT_EQ(stores.exported(stores.ours, 2, rows), bytes);
    stores.expect_equal({{0, 1280}});
}

TEST_F(CudaKvStoreTest, CopiesRowsWithinAndAcrossPages) {
    Stores stores;
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

TEST_F(CudaKvStoreTest, LayersFollowEachOtherKeysFirst) {
    Stores stores;
    const auto n_numbers = kPages.n_pages * kPages.page_rows * stores.config.n_embd_kv();
    EXPECT_EQ(stores.ours.values(1) - stores.ours.keys(1), n_numbers);
    EXPECT_EQ(stores.ours.keys(2) - stores.ours.values(1), n_numbers);
    EXPECT_EQ(reinterpret_cast<const std::byte*>(stores.ours.values(3) + n_numbers) -
                  reinterpret_cast<const std::byte*>(stores.ours.keys(1)),
              static_cast<std::ptrdiff_t>(stores.ours.bytes()));
}

}  // namespace
}  // namespace knap::test::cuda_kv_store_test
