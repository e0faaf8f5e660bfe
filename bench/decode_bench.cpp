// How fast are plain decoding and prefill compared with libllama, in one process, on the same
// tokens and with the same threads? libllama runs with flash attention on and off, and the faster
// of the two counts.
//
//     decode_bench MODEL [--threads N] [--kernels auto|ggml] [--prefill N,...] [--depths N,...]
//                  [--json FILE]
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "bench_json.h"
#include "bench_main.h"
#include "decode/advance.h"
#include "device/backend.h"
#include "measure.h"
#include "model_rig.h"
#include "tools/peer/llama_peer.h"

namespace knap::bench {
namespace {

constexpr int kDecodeTokens = 16;  // per timed run

struct Settings {
    std::filesystem::path model;
    int n_threads = 0;
    bool has_kernels = true;                        // with our own kernels
    std::vector<int> prefills{512, 4096};           // prompt lengths
    std::vector<int> depths{16, 2048, 4096, 8000};  // at which decoding is measured
};

class Race {
  public:
    Race(const std::filesystem::path& path, int n_threads, Kernels kernels, BenchJson& json)
        : json_(json),
          backend_(n_threads),
          ours_(path, backend_, kernels),
          plain_(path, peer_options(false)),
          flash_(path, peer_options(true)),
          tokens_(random_tokens(kContext, ours_.config.n_vocab)) {
        json_.add_model(path, ours_.config, backend_);
    }

    int n_threads() const { return backend_.n_threads(); }

    // Times rows [from, to) in passes of kUbatch rows. Rewinds before every run.
    void race_prefill(const char* label, int from, int to, int n_rounds) {
        const auto sides = run({[=, this] { feed_ours(from, to, kContext); },
                                [=, this] { feed_peer(plain_, from, to, kUbatch); },
                                [=, this] { feed_peer(flash_, from, to, kUbatch); }},
                               n_rounds);
        report(label, sides, to - from);
        json_.add_row({{"what", "prefill"}, {"depth", to}}, sides, to - from);
    }

    // Times kDecodeTokens tokens, one at a time, after `depth` rows. Rewinds before every run.
    void race_decode(const char* label, int depth, int n_rounds) {
        const int end = depth + kDecodeTokens;
        const auto sides = run({[=, this] { feed_ours(depth, end, 1); },
                                [=, this] { feed_peer(plain_, depth, end, 1); },
                                [=, this] { feed_peer(flash_, depth, end, 1); }},
                               n_rounds);
        report(label, sides, kDecodeTokens);
        json_.add_row({{"what", "decode"}, {"depth", depth}}, sides, kDecodeTokens);
        ours_.cache.truncate(depth);
        plain_.truncate(depth);
        flash_.truncate(depth);
    }

    // Advances all three from `from` rows to `depth`.
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
                .beside = &backend_};
    }

    std::span<const Token> beginning(int n) const {
        return std::span(tokens_).first(static_cast<std::size_t>(n));
    }

    // Feeds `step` tokens at a time, each time in as few passes as possible.
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

    BenchJson& json_;
    Backend backend_;
    ModelRig ours_;
    LlamaPeer plain_;
    LlamaPeer flash_;
    std::vector<Token> tokens_;
};

void run_races(const Settings& settings, BenchJson json) {
    Race race(settings.model, settings.n_threads,
              settings.has_kernels ? Kernels::automatic : Kernels::ggml, json);
    std::printf("%s, %d threads; speed of knap / speed of libllama's better setting, medians\n",
                settings.model.filename().c_str(), race.n_threads());
    constexpr int kLong = 1024;  // from here on, fewer runs are enough
    for (const int n_tokens : settings.prefills) {
        race.race_prefill(concat("prefill ", n_tokens).c_str(), 0, n_tokens,
                          n_tokens < kLong ? 5 : 3);
    }
    int n_filled = 0;
    for (const int depth : settings.depths) {
        race.go_on(n_filled, depth);
        race.race_decode(concat("decode at depth ", depth).c_str(), depth, depth < kLong ? 15 : 9);
        n_filled = depth;
    }
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    knap::bench::Settings settings;
    std::string kernels = "auto";
    std::string json;
    CLI::App app("Plain decoding and prefill compared with libllama", "decode_bench");
    app.add_option("MODEL", settings.model)->required();
    app.add_option("--threads", settings.n_threads, "number of threads; 0: the physical cores");
    app.add_option("--kernels", kernels, "auto: with our own kernels; ggml: only ggml's")
        ->check(CLI::IsMember({"auto", "ggml"}));
    app.add_option("--prefill", settings.prefills, "prompt lengths")
        ->delimiter(',')
        ->check(CLI::Range(1, knap::bench::kContext));
    app.add_option("--depths", settings.depths, "contexts to decode after, ascending")
        ->delimiter(',')
        ->check(CLI::Range(0, knap::bench::kContext - knap::bench::kDecodeTokens));
    app.add_option("--json", json, "file to write every time to");
    CLI11_PARSE(app, argc, argv);
    settings.has_kernels = kernels == "auto";
    std::ranges::sort(settings.depths);
    return knap::bench::bench_main("decode_bench", [&] {
        knap::bench::run_races(settings, {json, argc, argv});
    });
}
