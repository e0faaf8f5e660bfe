// What does attention cost, by path, context and number of rows? Times all layers of the default
// model's shape and two layers of an 8B shape: our kernel with an f16 and an int8 cache, and with
// f16 also the folded products, ggml's flash attention, and the unfolded products that libllama
// builds.
//
//     attention_bench [THREADS]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include "ggml-backend.h"

#include "bench_main.h"
#include "graph/attention/ggml_attention.h"
#include "kernels/attention/attention.h"
#include "measure.h"
#include "single_graph.h"

namespace knap::bench {
namespace {

constexpr int kRounds = 9;

ModelConfig shape(int n_layers, int n_heads, int n_kv_heads, int head_dim) {
    ModelConfig config;
    config.n_layers = n_layers;
    config.n_heads = n_heads;
    config.n_kv_heads = n_kv_heads;
    config.head_dim = head_dim;
    config.attention_scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
    return config;
}

ggml_tensor* unfolded(ggml_context* ctx,
                      const ModelConfig& config,
                      const GgmlKvStore& cache,
                      int layer,
                      ggml_tensor* q,
                      int n_kv,
                      ggml_tensor* mask) {
    ggml_tensor* scores =
        ggml_mul_mat(ctx, cache.keys(ctx, layer, 0, n_kv), ggml_permute(ctx, q, 0, 2, 1, 3));
    scores = ggml_soft_max_ext(ctx, scores, mask, config.attention_scale, 0.0f);
    ggml_tensor* out = ggml_mul_mat(ctx, cache.values(ctx, layer, 0, n_kv), scores);
    return ggml_cont_2d(ctx, ggml_permute(ctx, out, 0, 2, 1, 3), config.n_embd_q(), q->ne[2]);
}

// All layers on the path that the cache is laid out for. Queries and mask are zero, because the
// time does not depend on them.
std::unique_ptr<SingleGraph> build(Backend& backend,
                                   const ModelConfig& config,
                                   const GgmlKvStore& cache,
                                   bool is_unfolded,
                                   int n_kv,
                                   int n_rows,
                                   const AttentionTasks* tasks) {
    auto single = std::make_unique<SingleGraph>(backend);
    ggml_context* ctx = single->context();
    ggml_tensor* q =
        ggml_new_tensor_3d(ctx, GGML_TYPE_F32, config.head_dim, config.n_heads, n_rows);
    ggml_tensor* mask = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, n_kv, n_rows);
    ggml_set_output(q);
    ggml_set_output(mask);
    const AttentionBlock block{.first = 0, .n_rows = n_rows, .n_kv = n_kv};
    AttentionInputs inputs{.blocks = std::span(&block, 1), .masks = {mask}};
    inputs.tasks = is_tiled(cache.layout()) ? tasks : nullptr;
    ggml_tensor* out = nullptr;
    for (int layer = 0; layer < config.n_layers; ++layer) {
        out = is_unfolded ? unfolded(ctx, config, cache, layer, q, n_kv, mask)
                          : build_attention(ctx, config, cache, layer, nullptr, q, inputs);
        ggml_build_forward_expand(single->graph(), out);
    }
    single->finish(out);
    ggml_backend_tensor_memset(q, 0, 0, ggml_nbytes(q));
    if (mask->buffer != nullptr) {  // our kernel takes no mask
        ggml_backend_tensor_memset(mask, 0, 0, ggml_nbytes(mask));
    }
    return single;
}

constexpr int kCapacity = 8192;

// A cache for the path and type, with a sequence that has all of its rows. Every row is written, so
// that it has its own memory.
struct FilledCache {
    FilledCache(const ModelConfig& config,
                Backend& backend,
                AttentionPath path,
                CacheType type = CacheType::f16)
        : store(new GgmlKvStore(
              config,
              {.backend = &backend, .end_layer = config.n_layers},
              {.types = {type, type}, .layout = layout_for(path, type), .pages = shape(path)})),
          memory(stores(store), shape(path)),
          sequence(memory, kCapacity) {
        sequence.reserve(kCapacity);
        const std::vector<std::byte> zeros(sequence.saved_row_bytes() * kCapacity);
        for (int layer = 0; layer < config.n_layers; ++layer) {
            sequence.write_rows(layer, kCapacity, zeros.data());
        }
    }

    static PageShape shape(AttentionPath path) {
        const int page_rows = path == AttentionPath::kernel ? kAttentionChunk : kCapacity;
        return {.page_rows = page_rows, .n_pages = kCapacity / page_rows};
    }
    static std::vector<std::unique_ptr<KvStore>> stores(GgmlKvStore* store) {
        std::vector<std::unique_ptr<KvStore>> all;
        all.emplace_back(store);
        return all;
    }

    GgmlKvStore* store;  // of the memory
    KvMemory memory;
    Sequence sequence;
};

void compare(Backend& backend, const ModelConfig& config) {
    const FilledCache half(config, backend, AttentionPath::kernel);
    const FilledCache int8(config, backend, AttentionPath::kernel, CacheType::q8_0);
    const FilledCache transposed(config, backend, AttentionPath::folded);
    const FilledCache rows(config, backend, AttentionPath::flash);
    std::printf("%d layers, %d heads, %d KV heads, head size %d; times relative to our kernel\n",
                config.n_layers, config.n_heads, config.n_kv_heads, config.head_dim);
    std::printf("%6s %5s | %9s %8s %8s %8s %8s | kernel, N rows / one: f16, int8\n", "n_kv", "rows",
                "kernel", "int8", "folded", "flash", "unfolded");
    for (const int n_kv : {512, 2048, 8192}) {
        double one_row[2] = {};
        for (const int n_rows : {1, 2, 4, 8, 16, 128}) {
            std::vector<std::unique_ptr<SingleGraph>> graphs;
            std::deque<AttentionTasks> tasks;
            for (const FilledCache* cache : {&half, &int8, &transposed, &rows}) {
                const TaskRun run{.sequence = &cache->sequence,
                                  .layout = {.context = n_kv - n_rows},
                                  .first_row = n_kv - n_rows,
                                  .n_rows = n_rows};
                tasks.emplace_back(config).plan({&run, 1}, {}, backend.n_threads());
                graphs.push_back(
                    build(backend, config, *cache->store, false, n_kv, n_rows, &tasks.back()));
            }
            graphs.push_back(
                build(backend, config, *transposed.store, true, n_kv, n_rows, nullptr));
            std::vector<Contestant> sides;
            for (const auto& graph : graphs) {
                sides.push_back({"", [g = graph.get()] { g->run(); }});
            }
            alternate(sides, kRounds);
            const double kernel = median(sides[0].times_ms);
            const double of_int8 = median(sides[1].times_ms);
            if (n_rows == 1) {
                one_row[0] = kernel;
                one_row[1] = of_int8;
            }
            std::printf("%6d %5d | %6.2f ms %7.2fx %7.2fx %7.2fx %7.2fx | %.2f %.2f\n", n_kv,
                        n_rows, kernel, of_int8 / kernel, median(sides[2].times_ms) / kernel,
                        median(sides[3].times_ms) / kernel, median(sides[4].times_ms) / kernel,
                        kernel / one_row[0], of_int8 / one_row[1]);
            std::fflush(stdout);
        }
    }
}

void run(int n_threads) {
    Backend backend(n_threads);
    std::printf("%d threads\n", backend.n_threads());
    compare(backend, shape(30, 9, 3, 64));
    compare(backend, shape(2, 32, 8, 128));
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    return knap::bench::bench_main("attention_bench",
                                   [&] { knap::bench::run(argc > 1 ? std::atoi(argv[1]) : 0); });
}
