// Does the throughput that is predicted for a plan agree with what drafting with it gives? For each
// prompt and plan: acceptance by replay of the last tokens of a text, costs by the profile, and a
// run of `static` on the rest of the text's answer.
//
//     predict_bench MODEL DATA.jsonl[:TASK][@TOKENS]... [--limit N] [--tokens N] [--threads N]
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "knap/knap.h"

#include "base/error.h"
#include "bench_main.h"
#include "cells.h"
#include "decode/advance.h"
#include "graph/attention.h"
#include "graph/forward.h"
#include "graph/plan_text.h"
#include "kv/kv_cache.h"
#include "prompts.h"
#include "runtime/engine_impl.h"
#include "runtime/known_costs.h"
#include "runtime/profiling.h"
#include "search/replay.h"
#include "statistics.h"

namespace knap::bench {
namespace {

struct Settings {
    std::string model;
    std::vector<std::string> sources;
    std::size_t limit = 2;
    int n_tokens = 64;
    int n_threads = 0;
};

constexpr int kContext = 8192;
constexpr int kScratchRows = 256;
constexpr int kDraftLength = 4;
constexpr int kReplayRows = 32;
constexpr int kAnswerBeforeReplay = 48;  // tokens of the answer that replay looks at

// Plans of many costs and qualities, for a model of any number of layers.
std::vector<ModulePlan> plans_for(int n_layers) {
    std::vector<ModulePlan> plans;
    for (const int recent : {32, 128, 512, 1024}) {
        plans.push_back(uniform_window_plan(n_layers, {.sinks = 16, .recent = recent}));
    }
    for (const int every : {2, 4, 8}) {
        ModulePlan skips(n_layers);
        ModulePlan mixed = uniform_window_plan(n_layers, {.sinks = 16, .recent = 256});
        for (int layer = every; layer < n_layers - 1; layer += every) {
            skips.set(layer, Module::attention, Level::skip);
            mixed.set(layer, Module::mlp, Level::skip);
        }
        plans.push_back(skips);
        plans.push_back(mixed);
    }
    return plans;
}

class Prediction {
  public:
    explicit Prediction(const Settings& settings)
        : settings_(settings),
          engine_(
              {.model_path = settings.model, .n_ctx = kContext, .n_threads = settings.n_threads}),
          impl_(engine_.impl()),
          cache_(impl_.model,
                 impl_.backend,
                 cache_options(impl_.model, impl_.config, kContext + kScratchRows)),
          forward_(impl_.model, *impl_.weights, impl_.backend, cache_, impl_.config.n_ubatch),
          costs_(profile()) {}

    void run(const Cell& cell) {
        for (const DataPrompt& prompt : read_prompts(cell.source, settings_.limit)) {
            const auto n_fit = static_cast<std::size_t>(kContext - 2 * settings_.n_tokens - 64);
            const std::size_t n_max =
                cell.max_tokens > 0 ? std::min(n_fit, cell.max_tokens) : n_fit;
            run_prompt(cell, fit_prompt(engine_, prompt.text, n_max));
        }
    }

    void print_summary() const {
        std::printf("Pearson correlation of predicted and measured speed over %zu runs: %.3f\n",
                    predicted_.size(), pearson(predicted_, measured_));
    }

  private:
    CostProfile profile() {
        const CostProfile known = known_profile(impl_);
        return can_fit(known) ? known : *profile_engine(engine_, /*seconds=*/15);
    }

    static Result generate(Session& session,
                           std::span<const Token> text,
                           const SpeculationOptions& how,
                           int n_tokens) {
        GenerateOptions options;
        options.n_predict = n_tokens;
        options.speculation = how;
        options.ignore_eos = true;
        return session.generate(text, options);
    }

    // The answer's first tokens are part of the text, so that replay sees what drafts will see.
    void run_prompt(const Cell& cell, std::vector<Token> text) {
        Session session(engine_);
        const Result start = generate(session, text, plain_decoding(), kAnswerBeforeReplay);
        text.insert(text.end(), start.tokens.begin(), start.tokens.end());
        cache_.truncate(0);
        advance(forward_, cache_, text);
        const TargetRows target =
            collect_target_rows(forward_, cache_, text, {.n_rows = kReplayRows});
        const int n_context = static_cast<int>(text.size());
        generate(session, text, plain_decoding(), 1);  // the text's rows, for all below
        for (const ModulePlan& plan : plans_for(impl_.model.n_layers)) {
            const ReplayResult one = *replay(forward_, cache_, plan, target);
            const double plain_ms =
                generate(session, text, plain_decoding(), settings_.n_tokens).timings.decode_ms;
            const Result result = generate(
                session, text,
                {.strategy = "static", .draft_max = kDraftLength, .draft_plan = to_string(plan)},
                settings_.n_tokens);
            const double predicted =
                costs_.plain_step_ms(n_context) *
                tokens_per_ms({.rest = (one.agreed + 1) / (one.n_rows + 2)},
                              costs_.round_cost(plan, n_context, kDraftLength), kDraftLength);
            predicted_.push_back(predicted);
            measured_.push_back(plain_ms / result.timings.decode_ms);
            std::printf(
                "%-24s %5d  %-46s agreed %2.0f of %d, accepted %.2f, predicted %.2f, measured "
                "%.2f\n",
                cell.name.c_str(), n_context, to_string(plan).substr(0, 46).c_str(), one.agreed,
                one.n_rows, result.speculation.acceptance_rate, predicted, measured_.back());
            std::fflush(stdout);
        }
    }

    Settings settings_;
    Engine engine_;
    Engine::Impl& impl_;
    KvCache cache_;
    Forward forward_;
    CostModel costs_;
    std::vector<double> predicted_;  // speed over plain decoding
    std::vector<double> measured_;
};

void run(const Settings& settings) {
    Prediction prediction(settings);
    for (const std::string& source : settings.sources) {
        prediction.run(parse_cell(source));
    }
    prediction.print_summary();
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    knap::bench::Settings settings;
    CLI::App app("Predicted and measured throughput of plans", "predict_bench");
    app.add_option("MODEL", settings.model)->required();
    app.add_option("DATA.jsonl[:TASK][@TOKENS]", settings.sources)->required();
    app.add_option("--limit", settings.limit, "prompts of a cell")->check(CLI::PositiveNumber);
    app.add_option("--tokens", settings.n_tokens, "tokens generated")->check(CLI::PositiveNumber);
    app.add_option("--threads", settings.n_threads, "threads; 0: the physical cores");
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("predict_bench", [&] { knap::bench::run(settings); });
}
