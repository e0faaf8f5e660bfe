// How long does a pass take with knap's own CUDA kernels? Passes of a few rows, with their choices,
// their best tokens or their logits, a draft with a window, chains of drafts and 512 rows of a
// prompt, by context length. Needs no CUDA in ggml, so that a build of
// the kernels alone is enough (`cmake -DKNAP_CUDA_KERNELS=ON`); device_bench compares with
// libllama.
//
//     cuda_step_bench MODEL [--depths N,...] [--rows N,...] [--int8-cache]
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "bench_main.h"
#include "decode/advance.h"
#include "forward/plan_text.h"
#include "measure.h"
#include "support/strip_model.h"

namespace knap::bench {
namespace {

constexpr int kUbatch = 512;
constexpr int kRounds = 9;
constexpr int kSteps = 16;  // of a time

struct Settings {
    std::filesystem::path model;
    std::vector<int> depths{0, 16384};
    std::vector<int> rows{1, 8};
    bool has_int8_cache = false;
    CacheTypes caches() const {
        const CacheType type = has_int8_cache ? CacheType::q8_0 : CacheType::f16;
        return {type, type};
    }
};

class StepTimes {
  public:
    explicit StepTimes(const Settings& settings)
        : settings_(settings),
          model_(settings.model),
          devices_(model_.device_models(settings.caches())),
          text_(model_.config(), devices_, settings.depths.back() + kUbatch, kUbatch),
          tokens_(kUbatch),
          logit_rows_(16) {
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            tokens_[i] =
                static_cast<Token>(i * 7919 % static_cast<std::size_t>(model_.config().n_vocab));
        }
        std::iota(logit_rows_.begin(), logit_rows_.end(), 0);
    }

    void run() {
        advance(text_.forward(), text_.sequence(), tokens_);
        fill();
        for (const int depth : settings_.depths) {
            go_to(depth);
            measure(depth);
        }
    }

  private:
    // Rows beyond the first are copies: the time of a pass depends on how many there are.
    void fill() {
        for (int row = kUbatch; row < settings_.depths.back(); ++row) {
            text_.sequence().copy_row(row % kUbatch, row);
        }
    }

    void go_to(int depth) {
        Sequence& sequence = text_.sequence();
        sequence.truncate(std::min(depth, sequence.committed()));
        sequence.commit(depth);
    }

    void step(int depth, int n_rows, const ForwardRequest& how) {
        const auto n = static_cast<std::size_t>(n_rows);
        ForwardRequest request = how;
        request.tokens = std::span(tokens_).first(n);
        request.first_row = depth;
        request.layout.context = depth;
        request.logit_rows = std::span(logit_rows_).first(n);
        for (int i = 0; i < kSteps; ++i) {
            text_.forward().run(request);
        }
    }

    void read_prompt(int depth) {
        text_.forward().run({.tokens = tokens_,
                             .first_row = depth,
                             .layout = {.context = depth},
                             .logit_rows = std::span(logit_rows_).first(1)});
    }

    void chain(int depth, const DrawRule& draw) {
        text_.forward().run_chain(
            {.token = 5, .first_row = depth, .n_steps = kSteps, .draw = draw});
    }

    void measure(int depth) {
        const ModulePlan window =
            canonical(parse_plan("a=w16+1024", model_.config().n_layers), depth);
        std::vector<Contestant> sides;
        for (const int n : settings_.rows) {
            const auto name = concat(n, n == 1 ? " row" : " rows");
            sides.push_back({name, [=, this] { step(depth, n, {.chooses = true}); }});
            sides.push_back(
                {concat(name, ", best 40"), [=, this] { step(depth, n, {.n_best = 40}); }});
            sides.push_back({concat(name, ", logits"), [=, this] { step(depth, n, {}); }});
        }
        sides.push_back({"draft, a=w16+1024",
                         [&, depth] { step(depth, 1, {.plan = &window, .chooses = true}); }});
        const auto add_chain = [&](const char* name, const DrawRule& draw) {
            sides.push_back({name, [=, this] { chain(depth, draw); }});
        };
        add_chain("chain, greedy", {});
        add_chain("chain, top-k 40",
                  {.temperature = 1, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f});
        add_chain("chain, top-p", {.temperature = 1, .top_p = 0.95f});
        alternate(sides, kRounds);
        std::vector<Contestant> prompt{
            {concat("prompt of ", kUbatch), [=, this] { read_prompt(depth); }}};
        alternate(prompt, kRounds);
        std::printf("context of %d\n", depth);
        for (const Contestant& side : sides) {
            print(side, kSteps);
        }
        print(prompt.front(), 1);
    }

    static void print(const Contestant& side, int n_steps) {
        std::printf("  %-24s %8.3f ms (+-%2.0f%%)\n", side.name.c_str(),
                    median(side.times_ms) / n_steps, 100 * spread(side.times_ms));
        std::fflush(stdout);
    }

    const Settings& settings_;
    test::StripModel model_;
    DeviceModels devices_;
    SingleSequence text_;
    std::vector<Token> tokens_;
    std::vector<int> logit_rows_;
};

void run(Settings settings) {
    if (!has_cuda_kernels()) {
        fail(
            "expected a build with CUDA kernels (cmake -DKNAP_CUDA_KERNELS=ON), found one without");
    }
    if (!test::has_strip_gpu()) {
        fail("expected an NVIDIA GPU, found none");
    }
    std::ranges::sort(settings.depths);
    if (settings.depths.front() < 0 || std::ranges::min(settings.rows) < 1 ||
        std::ranges::max(settings.rows) > 16) {
        fail("expected --depths of 0 or more and --rows from 1 to 16, found others");
    }
    StepTimes(settings).run();
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    CLI::App app{"Times passes with knap's own CUDA kernels"};
    knap::bench::Settings settings;
    app.add_option("model", settings.model, "model in GGUF format")->required();
    app.add_option("--depths", settings.depths, "context lengths")->delimiter(',');
    app.add_option("--rows", settings.rows, "rows of a pass")->delimiter(',');
    app.add_flag("--int8-cache", settings.has_int8_cache, "keys and values of type q8_0");
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("cuda_step_bench", [&] { knap::bench::run(settings); });
}
