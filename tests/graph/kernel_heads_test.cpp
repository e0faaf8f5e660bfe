// The node that rotates queries and keys and stores cache rows, compared with ggml's rotation and
// conversion.
#include "graph/kernel_heads.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"

#include <gtest/gtest.h>

#include "device/backend.h"
#include "graph/attention/attention_policy.h"
#include "graph/rotation.h"
#include "kernels/attention/attention.h"

namespace knap::test::kernel_heads_test {
namespace {

constexpr int kCapacity = 64;

ModelConfig shape(RopePairing pairing, int head_dim, int n_rot) {
    ModelConfig config;
    config.n_layers = 1;
    config.n_heads = 6;
    config.n_kv_heads = 2;
    config.head_dim = head_dim;
    config.rope.pairing = pairing;
    config.rope.n_rot = n_rot;
    return config;
}

struct Outcome {
    std::vector<float> queries;     // [head_dim, n_heads, n_rows]
    std::vector<std::byte> cached;  // the rows as the cache saves them
};

// Rows of one product of random numbers: queries, keys and values side by side.
class HeadsGraph {
  public:
    HeadsGraph(const ModelConfig& config, int n_rows, int n_threads = 1)
        : config_(config),
          n_rows_(n_rows),
          backend_(n_threads),
          context_(ggml_init({64 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true})),
          ctx_(context_.get()),
          graph_(ggml_new_graph(ctx_)),
          product_(new_input(config.n_embd_q() + 2 * config.n_embd_kv())),
          pairs_(new_input(config.rope.n_rot)),
          positions_(ggml_new_tensor_1d(ctx_, GGML_TYPE_I32, n_rows)),
          divisors_(ggml_new_tensor_1d(ctx_, GGML_TYPE_F32, config.rope.n_rot / 2)) {
        ggml_set_output(positions_);
        ggml_set_output(divisors_);
    }

    // Runs our node, which writes to cache rows from `first_row` on.
    Outcome run_node(int first_row, CacheType type = CacheType::f16) {
        const GgmlKvStore cache(config_, share(),
                                {.types = {type, type},
                                 .layout = layout_for(AttentionPath::kernel, type),
                                 .pages = {.page_rows = 256, .n_pages = 1}});
        const KvSlots slots = cache.new_slots(ctx_, n_rows_);
        ggml_set_output(slots.rows);
        ggml_tensor* rope_table =
            build_rope_table(ctx_, config_.rope, pairs_, positions_, divisors_);
        ggml_tensor* queries =
            build_kernel_heads(ctx_, config_, cache, 0, heads(), rope_table, slots);
        allocate(queries);
        std::ranges::copy(rows_from(first_row), numbers_of<std::int32_t>(slots.rows).begin());
        return compute(queries, cache);
    }

    // Runs ggml's operators on a cache in rows.
    Outcome run_ggml(int first_row) {
        const GgmlKvStore cache(
            config_, share(),
            {.layout = KvLayout::rows, .pages = {.page_rows = 256, .n_pages = 1}});
        const KvSlots slots = cache.new_slots(ctx_, n_rows_);
        ggml_set_output(slots.keys);
        ggml_set_output(slots.values);
        const auto [q, k, v] = heads();
        ggml_tensor* queries = rotated(q);
        ggml_tensor* keys =
            ggml_reshape_2d(ctx_, ggml_cont(ctx_, rotated(k)), config_.n_embd_kv(), n_rows_);
        cache.write(ctx_, graph_, 0, keys, ggml_cont(ctx_, v), slots);
        allocate(queries);
        cache.fill_slots(numbers_of<std::int64_t>(slots.keys),
                         numbers_of<std::int64_t>(slots.values), rows_from(first_row));
        return compute(queries, cache);
    }

  private:
    std::vector<std::int32_t> rows_from(int first_row) const {
        std::vector<std::int32_t> rows(static_cast<std::size_t>(n_rows_));
        std::iota(rows.begin(), rows.end(), first_row);
        return rows;
    }

    template <typename Number>
    static std::span<Number> numbers_of(const ggml_tensor* tensor) {
        return {static_cast<Number*>(tensor->data),
                static_cast<std::size_t>(ggml_nelements(tensor))};
    }

    LayerShare share() { return {.backend = &backend_, .first_layer = 0, .end_layer = 1}; }

    ggml_tensor* new_input(int n) {
        ggml_tensor* input = ggml_new_tensor_2d(ctx_, GGML_TYPE_F32, n, n_rows_);
        ggml_set_output(input);  // keeps it from being overwritten
        return input;
    }

    RowHeads heads() const {
        const auto part = [&](int first, int count) {
            return ggml_view_2d(ctx_, product_, count, n_rows_, product_->nb[1],
                                static_cast<std::size_t>(first) * sizeof(float));
        };
        const int n_q = config_.n_embd_q();
        const int n_kv = config_.n_embd_kv();
        return {part(0, n_q), part(n_q, n_kv), part(n_q + n_kv, n_kv)};
    }

    ggml_tensor* rotated(ggml_tensor* x) {
        x = ggml_view_3d(ctx_, x, config_.head_dim, x->ne[0] / config_.head_dim, n_rows_,
                         static_cast<std::size_t>(config_.head_dim) * sizeof(float), x->nb[1], 0);
        return build_rotation(ctx_, config_.rope, x, positions_, divisors_);
    }

    void allocate(ggml_tensor* queries) {
        ggml_set_output(queries);
        ggml_build_forward_expand(graph_, queries);
        allocator_.reset(ggml_gallocr_new(backend_.buffer_type()));
        ASSERT_TRUE(ggml_gallocr_alloc_graph(allocator_.get(), graph_));
        std::mt19937 engine(1);
        std::normal_distribution<float> normal;
        for (float& x : numbers(product_)) {
            x = normal(engine);
        }
        for (float& x : numbers(divisors_)) {
            x = 1.0f + std::abs(normal(engine));
        }
        fill_unit_pairs(config_.rope, numbers(pairs_));
        auto* position = static_cast<std::int32_t*>(positions_->data);
        for (int row = 0; row < n_rows_; ++row) {
            position[row] = 1000 + 7 * row;
        }
    }

    static std::span<float> numbers(ggml_tensor* tensor) {
        return {static_cast<float*>(tensor->data),
                tensor->data != nullptr ? static_cast<std::size_t>(ggml_nelements(tensor)) : 0};
    }

    Outcome compute(ggml_tensor* queries, const GgmlKvStore& cache) {
        EXPECT_TRUE(backend_.compute(graph_));
        const auto out = numbers(queries);
        std::vector<std::byte> cached(cache.saved_row_bytes() * kCapacity);
        const StoredRows all{.first = 0, .n_rows = kCapacity};
        cache.export_rows(0, {&all, 1}, cached.data());
        return {{out.begin(), out.end()}, cached};
    }

    ModelConfig config_;
    int n_rows_;
    Backend backend_;
    ggml_context_ptr context_;
    ggml_context* ctx_;
    ggml_cgraph* graph_;
    ggml_tensor* product_;
    ggml_tensor* pairs_;
    ggml_tensor* positions_;
    ggml_tensor* divisors_;
    ggml_gallocr_ptr allocator_;
};

// The largest difference between the f16 numbers of two caches, relative to one plus their size.
float half_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
    float most = 0;
    const auto* x = reinterpret_cast<const ggml_fp16_t*>(a.data());
    const auto* y = reinterpret_cast<const ggml_fp16_t*>(b.data());
    for (std::size_t i = 0; i < a.size() / sizeof *x; ++i) {
        const float first = ggml_fp16_to_fp32(x[i]);
        const float second = ggml_fp16_to_fp32(y[i]);
        most = std::max(most, std::abs(first - second) / (1.0f + std::abs(second)));
    }
    return most;
}

// Expects the numbers of an int8 cache to differ from those of an f16 cache only by rounding.
void expect_int8_rows(const ModelConfig& config, const Outcome& int8, const Outcome& half) {
    const int head_dim = config.head_dim;
    const std::byte* row = int8.cached.data();
    const auto* expected = reinterpret_cast<const ggml_fp16_t*>(half.cached.data());
    for (int i = 0; i < 2 * config.n_kv_heads * kCapacity; ++i, expected += head_dim) {
        const bool is_key = i < config.n_kv_heads * kCapacity;
        ggml_fp16_t scale_bits;
        std::memcpy(&scale_bits, row + head_dim, sizeof scale_bits);
        const float scale = ggml_fp16_to_fp32(scale_bits);
        for (int d = 0; d < head_dim; ++d) {
            const int number = is_key ? static_cast<int>(row[d]) - kKeyOffset
                                      : static_cast<int>(static_cast<std::int8_t>(row[d]));
            ASSERT_NEAR(static_cast<float>(number) * scale, ggml_fp16_to_fp32(expected[d]),
                        0.55f * scale)
                << "row " << i << ", channel " << d;
        }
        row += head_dim + sizeof scale_bits;
    }
}

struct HeadsCase {
    RopePairing pairing;
    int head_dim;
    int n_rot;
    float ext_factor = 0.0f;
};

class KernelHeads : public ::testing::TestWithParam<HeadsCase> {};

TEST_P(KernelHeads, AgreeWithGgmlsOperators) {
    const HeadsCase& c = GetParam();
    ModelConfig config = shape(c.pairing, c.head_dim, c.n_rot);
    config.rope.ext_factor = c.ext_factor;
    config.rope.attn_factor = 1.25f;
    config.rope.n_ctx_orig = 512;
    for (const int n_rows : {1, 2, 21}) {
        for (const int first_row : {0, 13, 40}) {
            const Outcome node = HeadsGraph(config, n_rows).run_node(first_row);
            const Outcome ggml = HeadsGraph(config, n_rows).run_ggml(first_row);
            ASSERT_EQ(node.queries.size(), ggml.queries.size());
            for (std::size_t i = 0; i < node.queries.size(); ++i) {
                // Our node rounds a product and a sum at once; whether ggml does depends on its
                // compiler.
                ASSERT_NEAR(node.queries[i], ggml.queries[i], 2e-6) << i;
            }
            EXPECT_LE(half_difference(node.cached, ggml.cached), 0x1p-11f);
        }
    }
}

TEST_P(KernelHeads, Int8CacheHoldsTheSameRowsRounded) {
    const ModelConfig config = shape(GetParam().pairing, GetParam().head_dim, GetParam().n_rot);
    for (const int first_row : {0, 13, 40}) {
        const Outcome half = HeadsGraph(config, 21).run_node(first_row);
        const Outcome int8 = HeadsGraph(config, 21).run_node(first_row, CacheType::q8_0);
        EXPECT_EQ(int8.queries, half.queries);
        expect_int8_rows(config, int8, half);
    }
}

TEST_P(KernelHeads, DoNotDependOnTheNumberOfThreads) {
    const ModelConfig config = shape(GetParam().pairing, GetParam().head_dim, GetParam().n_rot);
    const Outcome one = HeadsGraph(config, 3, 1).run_node(14);
    const Outcome three = HeadsGraph(config, 3, 3).run_node(14);
    EXPECT_EQ(one.queries, three.queries);
    EXPECT_EQ(one.cached, three.cached);
}

INSTANTIATE_TEST_SUITE_P(Shapes,
                         KernelHeads,
                         ::testing::Values(HeadsCase{RopePairing::neighbours, 64, 64},
                                           HeadsCase{RopePairing::halves, 64, 64},
                                           HeadsCase{RopePairing::neighbours, 96, 24},
                                           HeadsCase{RopePairing::halves, 80, 40},
                                           HeadsCase{RopePairing::halves, 32, 32, 1.0f},
                                           HeadsCase{RopePairing::neighbours, 16, 16, 1.0f}));

}  // namespace
}  // namespace knap::test::kernel_heads_test
