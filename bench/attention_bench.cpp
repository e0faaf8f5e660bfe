// What does attention cost by path, context and rows? Two layers of an 8B shape (head size 128, 32
// heads, 8 KV heads), F16 cache: our kernel, the folded products, ggml's flash attention, and the
// unfolded products that libllama builds.
//
//     attention_bench [THREADS]
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "ggml-backend.h"

#include "bench_main.h"
#include "graph/attention.h"
#include "measure.h"
#include "single_graph.h"

namespace knap::bench {
namespace {

constexpr int kRounds = 9;

ModelConfig shape() {
    ModelConfig config;
    config.n_layers = 2;
    config.n_heads = 32;
    config.n_kv_heads = 8;
    config.head_dim = 128;
    config.attention_scale = 0.0883883f;
    return config;
}

ggml_tensor* unfolded(ggml_context* ctx,
                      const ModelConfig& config,
                      const KvCache& cache,
                      int layer,
                      ggml_tensor* q,
                      int n_kv,
                      ggml_tensor* mask) {
    ggml_tensor* scores =
        ggml_mul_mat(ctx, cache.keys(ctx, layer, n_kv), ggml_permute(ctx, q, 0, 2, 1, 3));
    scores = ggml_soft_max_ext(ctx, scores, mask, config.attention_scale, 0.0f);
    ggml_tensor* out = ggml_mul_mat(ctx, cache.values(ctx, layer, n_kv), scores);
    return ggml_cont_2d(ctx, ggml_permute(ctx, out, 0, 2, 1, 3), config.n_embd_q(), q->ne[2]);
}

// Both layers of the path that the cache is laid out for. Queries and mask are zeros: the time does
// not depend on them.
std::unique_ptr<SingleGraph> build(Backend& backend,
                                   const ModelConfig& config,
                                   const KvCache& cache,
                                   bool is_unfolded,
                                   int n_kv,
                                   int n_rows) {
    auto single = std::make_unique<SingleGraph>(backend);
    ggml_context* ctx = single->context();
    ggml_tensor* q =
        ggml_new_tensor_3d(ctx, GGML_TYPE_F32, config.head_dim, config.n_heads, n_rows);
    ggml_tensor* mask = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, n_kv, n_rows);
    ggml_set_output(q);
    ggml_set_output(mask);
    const AttentionBlock block{.first = 0, .n_rows = n_rows, .n_kv = n_kv};
    ggml_tensor* out = nullptr;
    for (int layer = 0; layer < config.n_layers; ++layer) {
        out = is_unfolded ? unfolded(ctx, config, cache, layer, q, n_kv, mask)
                          : build_attention(ctx, config, cache, layer, q, std::span(&block, 1),
                                            std::span(&mask, 1));
        ggml_build_forward_expand(single->graph(), out);
    }
    single->finish(out);
    ggml_backend_tensor_memset(q, 0, 0, ggml_nbytes(q));
    ggml_backend_tensor_memset(mask, 0, 0, ggml_nbytes(mask));
    return single;
}

void run(int n_threads) {
    Backend backend(n_threads);
    const ModelConfig config = shape();
    constexpr int kCapacity = 8192;
    KvCache tiled(config, backend, {.capacity = kCapacity, .layout = KvLayout::tiled_keys});
    KvCache transposed(config, backend, {.capacity = kCapacity});
    KvCache rows(config, backend, {.capacity = kCapacity, .layout = KvLayout::rows});
    for (KvCache* cache : {&tiled, &transposed, &rows}) {  // pages of their own for every row
        const std::vector<std::byte> zeros(cache->saved_row_bytes() * kCapacity);
        for (int layer = 0; layer < config.n_layers; ++layer) {
            cache->write_rows(layer, kCapacity, zeros.data());
        }
    }
    std::printf("%d threads; time relative to our kernel\n", backend.n_threads());
    std::printf("%6s %5s | %8s %8s %8s | kernel, N rows / one\n", "n_kv", "rows", "folded", "flash",
                "unfolded");
    for (const int n_kv : {512, 2048, 8192}) {
        double one_row = 0;
        for (const int n_rows : {1, 2, 4, 8, 16, 128}) {
            std::vector<std::unique_ptr<SingleGraph>> graphs;
            graphs.push_back(build(backend, config, tiled, false, n_kv, n_rows));
            graphs.push_back(build(backend, config, transposed, false, n_kv, n_rows));
            graphs.push_back(build(backend, config, rows, false, n_kv, n_rows));
            graphs.push_back(build(backend, config, transposed, true, n_kv, n_rows));
            std::vector<Contestant> sides;
            for (const auto& graph : graphs) {
                sides.push_back({"", [g = graph.get()] { g->run(); }});
            }
            alternate(sides, kRounds);
            const double kernel = median(sides[0].times_ms);
            one_row = n_rows == 1 ? kernel : one_row;
            std::printf("%6d %5d | %7.2fx %7.2fx %7.2fx | %.2f\n", n_kv, n_rows,
                        median(sides[1].times_ms) / kernel, median(sides[2].times_ms) / kernel,
                        median(sides[3].times_ms) / kernel, kernel / one_row);
            std::fflush(stdout);
        }
    }
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    return knap::bench::bench_main("attention_bench",
                                   [&] { knap::bench::run(argc > 1 ? std::atoi(argv[1]) : 0); });
}
