// How much memory does a request need besides weights and cache, and how much of decoding is spent
// outside the backend? Runs one request that fills a context of 2048 tokens, in its own process, so
// that the peak is that of this request.
//
//     footprint_bench MODEL [THREADS]
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "knap/knap.h"

#include "bench_main.h"

namespace knap::bench {
namespace {

constexpr int kContext = 2048;
constexpr int kGenerated = 128;

void run(const char* path, int n_threads) {
    Engine engine({.model_path = path, .n_ctx = kContext, .n_threads = n_threads});
    Session session(engine);
    std::vector<Token> prompt;
    while (prompt.size() < kContext - kGenerated) {
        const auto words = engine.tokenize("The knapper turns the core and strikes again. ", false);
        prompt.insert(prompt.end(), words.begin(), words.end());
    }
    prompt.resize(kContext - kGenerated);
    const Result result = session.generate(
        prompt, {.n_predict = -1, .speculation = plain_decoding(), .ignore_eos = true});
    const auto mib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
    const MemoryStatistics& memory = result.memory;
    std::printf("peak %.0f MiB = weights %.0f + cache %.0f + other %.0f MiB\n",
                mib(memory.peak_rss_bytes), mib(memory.weights_bytes), mib(memory.cache_bytes),
                mib(memory.peak_rss_bytes - memory.weights_bytes - memory.cache_bytes));
    std::printf(
        "host_ms / decode_ms = %.4f over %d tokens; graphs built %lld, reused %lld; load %.0f ms\n",
        result.timings.host_ms / result.timings.decode_ms, result.n_generated,
        static_cast<long long>(result.graphs.built), static_cast<long long>(result.graphs.reused),
        result.timings.load_ms);
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: footprint_bench MODEL [THREADS]\n");
        return 2;
    }
    return knap::bench::bench_main(
        "footprint_bench", [&] { knap::bench::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 0); });
}
