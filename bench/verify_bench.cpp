// What does a verification of N rows cost, relative to one row? Runs the whole model over a pending
// token and N - 1 drafted tokens, at several context lengths, and asks for what a greedy choice
// after every row needs.
//
//     verify_bench MODEL... [--threads N] [--cache f16|q8_0] [--depths N,...] [--json FILE]
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "bench_json.h"
#include "bench_main.h"
#include "decode/verifier.h"
#include "measure.h"
#include "model_rig.h"

namespace knap::bench {
namespace {

constexpr int kRounds = 11;
constexpr std::array kRows{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 17};

// A chain of `n_drafts` tokens.
DraftTree chain(int n_drafts, int n_vocab) {
    DraftTree tree;
    int last = kPendingNode;
    for (const Token token : random_tokens(n_drafts, n_vocab)) {
        last = tree.add(token, last);
    }
    return tree;
}

std::vector<Contestant> time_verifications(ModelRig& rig, int depth) {
    rig.go_to(depth);
    Verifier verifier(rig.forward, rig.cache);
    std::vector<Contestant> contestants;
    for (const int n_rows : kRows) {
        contestants.push_back(
            {concat(n_rows), [&verifier, tree = chain(n_rows - 1, rig.config.n_vocab)] {
                 verifier.run(/*pending=*/0, tree, /*reusable=*/{}, /*captures=*/{},
                              /*n_best=*/2);
             }});
    }
    alternate(contestants, kRounds);
    return contestants;
}

void print_head(const std::filesystem::path& path, int n_threads, const std::string& cache) {
    std::printf(
        "%s, %d threads, %s cache; time of a verification of N rows / of one, medians of %d\n",
        path.filename().c_str(), n_threads, cache.c_str(), kRounds);
    std::printf("%8s %18s |", "context", "one row");
    for (const int n_rows : std::span(kRows).subspan(1)) {
        std::printf(" %5d", n_rows);
    }
    std::printf("\n");
}

void print_depth(int depth, const std::vector<Contestant>& contestants) {
    const Contestant& one_row = contestants.front();
    std::printf("%8d %8.2f ms (+-%2.0f%%) |", depth, median(one_row.times_ms),
                100 * spread(one_row.times_ms));
    for (const Contestant& contestant : std::span(contestants).subspan(1)) {
        std::printf(" %5.2f", median(relative_times(contestant, one_row)));
    }
    std::printf("\n");
    std::fflush(stdout);
}

void run(const std::filesystem::path& path,
         int n_threads,
         const std::string& cache,
         std::span<const int> all_depths,
         BenchJson& json) {
    Backend backend(n_threads);
    ModelRig rig(path, backend, Kernels::automatic,
                 cache == "q8_0" ? CacheType::q8_0 : CacheType::f16);
    const std::span<const int> depths = rig.within_context(all_depths);
    rig.fill(depths.back());
    json.add_model(path, rig.config, backend);
    print_head(path, backend.n_threads(), cache);
    for (const int depth : depths) {
        const auto contestants = time_verifications(rig, depth);
        print_depth(depth, contestants);
        json.add_row({{"what", "verify"}, {"cache", cache}, {"depth", depth}}, contestants, 1);
    }
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    CLI::App app("The cost of a verification by number of rows", "verify_bench");
    std::vector<std::string> models;
    int n_threads = 0;
    std::string cache = "f16";
    std::vector<int> depths{16, 2048, 8000};
    app.add_option("MODEL", models, "models in GGUF format")->required();
    app.add_option("--threads", n_threads, "number of threads; 0: the physical cores");
    app.add_option("--cache", cache, "cache type")->check(CLI::IsMember({"f16", "q8_0"}));
    app.add_option("--depths", depths, "contexts to verify after, ascending")
        ->delimiter(',')
        ->check(CLI::PositiveNumber);
    std::string path;
    app.add_option("--json", path, "file to write every time to");
    CLI11_PARSE(app, argc, argv);
    std::ranges::sort(depths);
    return knap::bench::bench_main("verify_bench", [&] {
        knap::bench::BenchJson json(path, argc, argv);
        for (const std::string& model : models) {
            knap::bench::run(model, n_threads, cache, depths, json);
        }
    });
}
