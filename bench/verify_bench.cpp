// What does a verification of N rows cost, relative to one row? The whole model over a pending
// token and N - 1 drafts, with the logits of every row, after contexts of several lengths.
//
//     verify_bench MODEL... [THREADS]
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench_main.h"
#include "decode/verifier.h"
#include "measure.h"
#include "model_rig.h"

namespace knap::bench {
namespace {

constexpr int kRounds = 11;
constexpr std::array kRows{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 17};
constexpr std::array kDepths{16, 2048, 8000};

// A draft of `n_drafts` tokens in a row.
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
        contestants.push_back({"", [&verifier, tree = chain(n_rows - 1, rig.config.n_vocab)] {
                                   verifier.run(/*pending=*/0, tree, /*exact=*/{}, /*captures=*/{});
                               }});
    }
    alternate(contestants, kRounds);
    return contestants;
}

void print_head(const std::filesystem::path& path, int n_threads) {
    std::printf("%s, %d threads; time of a verification of N rows / of one, medians of %d\n",
                path.filename().c_str(), n_threads, kRounds);
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

void run(const std::filesystem::path& path, int n_threads) {
    Backend backend(n_threads);
    ModelRig rig(path, backend, Kernels::automatic);
    const std::span<const int> depths = rig.within_context(kDepths);
    rig.fill(depths.back());
    print_head(path, backend.n_threads());
    for (const int depth : depths) {
        print_depth(depth, time_verifications(rig, depth));
    }
}

bool is_number(std::string_view text) {
    return text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    std::vector<std::string> models(argv + 1, argv + argc);
    int n_threads = 0;
    if (!models.empty() && knap::bench::is_number(models.back())) {
        n_threads = std::atoi(models.back().c_str());
        models.pop_back();
    }
    if (models.empty()) {
        std::fprintf(stderr, "usage: verify_bench MODEL... [THREADS]\n");
        return 2;
    }
    return knap::bench::bench_main("verify_bench", [&] {
        for (const std::string& model : models) {
            knap::bench::run(model, n_threads);
        }
    });
}
