// How fast are plain decoding and prefill next to libllama, in one process, on the same tokens and
// the same threads? libllama is run with flash attention on and off, and the better of the two
// counts.
//
//     decode_bench MODEL [THREADS] [ggml]     "ggml": without kernels of our own
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bench_main.h"
#include "decode/advance.h"
#include "device/backend.h"
#include "measure.h"
#include "model_rig.h"
#include "peer/llama_peer.h"

namespace knap::bench {
namespace {

constexpr int kDecodeTokens = 16;  // of one timed run

class Race {
  public:
    Race(const std::filesystem::path& path, int n_threads, Kernels kernels)
        : backend_(n_threads),
          ours_(path, backend_, kernels),
          plain_(path, peer_options(false)),
          flash_(path, peer_options(true)),
          tokens_(random_tokens(kContext, ours_.config.n_vocab)) {}

    int n_threads() const { return backend_.n_threads(); }

    // Rows [from, to) in passes of kUbatch, rewound before every run.
    void race_prefill(const char* label, int from, int to, int n_rounds) {
        report(label,
               run({[=, this] { feed_ours(from, to, kContext); },
                    [=, this] { feed_peer(plain_, from, to, kUbatch); },
                    [=, this] { feed_peer(flash_, from, to, kUbatch); }},
                   n_rounds),
               to - from);
    }

    // kDecodeTokens tokens, one at a time, after `depth` rows; rewound before every run.
    void race_decode(const char* label, int depth, int n_rounds) {
        const int end = depth + kDecodeTokens;
        report(label,
               run({[=, this] { feed_ours(depth, end, 1); },
                    [=, this] { feed_peer(plain_, depth, end, 1); },
                    [=, this] { feed_peer(flash_, depth, end, 1); }},
                   n_rounds),
               kDecodeTokens);
        ours_.cache.truncate(depth);
        plain_.truncate(depth);
        flash_.truncate(depth);
    }

    // From `from` rows, where all three are, to `depth`.
    void go_on(int from, int depth) {
        feed_ours(from, depth, kContext);
        feed_peer(plain_, from, depth, kUbatch);
        feed_peer(flash_, from, depth, kUbatch);
    }

  private:
    PeerOptions peer_options(bool flash_attention) {
        return {.n_ctx = kContext,
                .n_ubatch = kUbatch,
                .n_threads = backend_.n_threads(),
                .flash_attention = flash_attention,
                .repack = true,
                .pool = &backend_};
    }

    std::span<const Token> beginning(int n) const {
        return std::span(tokens_).first(static_cast<std::size_t>(n));
    }

    // In steps of `step` tokens, each of as few passes as it can be.
    void feed_ours(int from, int to, int step) {
        ours_.cache.truncate(from);
        for (int n = from; n < to; n += step) {
            advance(ours_.forward, ours_.cache, beginning(std::min(n + step, to)));
        }
    }

    void feed_peer(LlamaPeer& peer, int from, int to, int step) const {
        peer.truncate(from);
        for (int n = from; n < to; n += step) {
            const int count = std::min(step, to - n);
            peer.feed(beginning(n + count).last(static_cast<std::size_t>(count)),
                      LlamaPeer::Logits::last_row);
        }
    }

    static std::vector<Contestant> run(std::vector<std::function<void()>> sides, int n_rounds) {
        std::vector<Contestant> contestants{
            {"knap", sides[0]}, {"llama, flash off", sides[1]}, {"llama, flash on", sides[2]}};
        alternate(contestants, n_rounds);
        return contestants;
    }

    static void report(const char* label, const std::vector<Contestant>& sides, int n_tokens) {
        const double ours = median(sides[0].times_ms);
        const double peer = std::min(median(sides[1].times_ms), median(sides[2].times_ms));
        std::printf("%-24s %7.2fx   ", label, peer / ours);
        for (const Contestant& side : sides) {
            std::printf("%s %.2f ms/token (+-%.0f%%)   ", side.name.c_str(),
                        median(side.times_ms) / n_tokens, 100 * spread(side.times_ms));
        }
        std::printf("\n");
        std::fflush(stdout);
    }

    Backend backend_;
    ModelRig ours_;
    LlamaPeer plain_;
    LlamaPeer flash_;
    std::vector<Token> tokens_;
};

void run_races(const std::filesystem::path& path, int n_threads, Kernels kernels) {
    Race race(path, n_threads, kernels);
    std::printf("%s, %d threads; speed of knap / speed of libllama's better setting, medians\n",
                path.filename().c_str(), race.n_threads());
    race.race_prefill("prefill 512", 0, 512, 5);
    race.race_decode("decode at depth 16", 16, 15);
    race.race_prefill("prefill 4096", 0, 4096, 1);
    race.race_decode("decode at depth 4096", 4096, 9);
    race.go_on(4096, 8000);
    race.race_decode("decode at depth 8000", 8000, 9);
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: decode_bench MODEL [THREADS] [ggml]\n");
        return 2;
    }
    const bool is_ggml_alone = argc > 3 && std::string_view(argv[3]) == "ggml";
    return knap::bench::bench_main("decode_bench", [&] {
        knap::bench::run_races(argv[1], argc > 2 ? std::atoi(argv[2]) : 0,
                               is_ggml_alone ? knap::Kernels::ggml : knap::Kernels::automatic);
    });
}
