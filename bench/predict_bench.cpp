// Does the predicted throughput of a plan agree with the measured one? For each prompt, plan and
// draft length: a prediction from the profile's costs and an acceptance rate, beside a run of
// `static`. The acceptance rate comes from a replay (docs/methods.md, "Replay") of either
//
// - the text that the run writes, known from plain decoding. This tests the throughput model and
//   the costs, given the right acceptance.
// - the tokens before the run. This also tests whether a text goes on as it was, which no
//   controller can know: where it starts to loop, more is accepted than predicted.
//
//     predict_bench MODEL DATA.jsonl[:TASK][@TOKENS]... [--limit N] [--tokens N] [--threads N]
#include <array>
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
#include "forward/forward.h"
#include "forward/plan_text.h"
#include "graph/attention/attention_policy.h"
#include "kv/sequence.h"
#include "runtime/engine_impl.h"
#include "runtime/files/known_costs.h"
#include "search/replay.h"
#include "tools/measure/prompt_data.h"
#include "tools/measure/prompt_fit.h"
#include "tools/measure/statistics.h"
#include "tools/profile/profiling.h"

namespace knap::bench {
namespace {

struct Settings {
    std::string model;
    std::vector<std::string> sources;
    int limit = 2;
    int n_tokens = 64;
    int n_threads = 0;
};

constexpr int kContext = 8192;
constexpr int kScratchRows = 256;
constexpr std::array kDraftLengths{2, 4, 8};
constexpr int kRowsBefore = 32;
constexpr int kAnswerBefore = 48;  // tokens of the answer before the run

// Plans with a range of costs and acceptance rates, for any number of layers.
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

// A plan, and its acceptance rate in replays.
struct Forecast {
    ModulePlan plan;
    double before = 0;  // on the tokens before the run
    double during = 0;  // on the tokens that the run writes
};

// Speeds over plain decoding, one per run.
struct Speeds {
    std::vector<double> before{};  // predicted
    std::vector<double> during{};
    std::vector<double> measured{};
};

class Prediction {
  public:
    explicit Prediction(const Settings& settings)
        : settings_(settings),
          engine_(
              {.model_path = settings.model, .n_ctx = kContext, .n_threads = settings.n_threads}),
          impl_(impl_of(engine_)),
          rows_(impl_.single_sequence(kContext + kScratchRows, impl_.config.n_ubatch)),
          cache_(rows_->sequence()),
          forward_(rows_->forward()),
          costs_(profile()) {}

    void run(const Cell& cell) {
        for (const DataPrompt& prompt : read_prompt_source(cell.source, settings_.limit).prompts) {
            const auto n_fit =
                static_cast<std::size_t>(kContext - kAnswerBefore - settings_.n_tokens);
            const std::size_t n_max =
                cell.max_tokens > 0 ? std::min(n_fit, cell.max_tokens) : n_fit;
            run_prompt(cell, fit_prompt(engine_, prompt.text, n_max).tokens);
        }
    }

    void print_summary() const {
        std::printf(
            "Pearson correlation of predicted and measured speed over %zu runs: %.3f with the "
            "acceptance on the text written, %.3f with that on the text before\n",
            speeds_.measured.size(), pearson(speeds_.during, speeds_.measured),
            pearson(speeds_.before, speeds_.measured));
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
        return session.generate(text,
                                {.n_predict = n_tokens, .speculation = how, .ignore_eos = true});
    }

    // The text before the run includes the first tokens of the answer, which a controller has seen.
    void run_prompt(const Cell& cell, std::vector<Token> text) {
        Session session(engine_);
        const Result start = generate(session, text, plain_decoding(), kAnswerBefore);
        text.insert(text.end(), start.tokens.begin(), start.tokens.end());
        const Result plain = generate(session, text, plain_decoding(), settings_.n_tokens);
        for (const Forecast& forecast : forecasts(text, plain.tokens)) {
            run_plan(cell, session, text, forecast);
        }
    }

    // Replays every plan on the text before the run and on the text that the run writes.
    std::vector<Forecast> forecasts(std::vector<Token> text, std::span<const Token> written) {
        std::vector<Forecast> forecasts;
        for (ModulePlan& plan : plans_for(impl_.model.n_layers)) {
            // A window that covers the context leaves nothing out.
            if (!canonical(plan, static_cast<int>(text.size())).is_full()) {
                forecasts.push_back({.plan = std::move(plan)});
            }
        }
        cache_.truncate(0);
        replay_all(text, kRowsBefore, &Forecast::before, forecasts);
        // Nothing is drafted after the last token.
        text.insert(text.end(), written.begin(), written.end() - 1);
        replay_all(text, static_cast<int>(written.size()) - 1, &Forecast::during, forecasts);
        return forecasts;
    }

    void replay_all(std::span<const Token> text,
                    int n_rows,
                    double Forecast::*acceptance,
                    std::vector<Forecast>& forecasts) {
        advance(forward_, cache_, text);
        const TargetRows target = collect_target_rows(forward_, cache_, text, {.n_rows = n_rows});
        for (Forecast& forecast : forecasts) {
            const ReplayResult found = *replay(forward_, cache_, forecast.plan, target);
            forecast.*acceptance = found.agreement();
        }
    }

    void run_plan(const Cell& cell,
                  Session& session,
                  std::span<const Token> text,
                  const Forecast& forecast) {
        const int n_context = static_cast<int>(text.size()) + settings_.n_tokens / 2;
        const std::string plan = to_string(forecast.plan);
        for (const int length : kDraftLengths) {
            // Right before the run, so that a slow moment of the machine affects both.
            const double plain_ms =
                generate(session, text, plain_decoding(), settings_.n_tokens).timings.decode_ms;
            const Result result =
                generate(session, text,
                         {.strategy = "static", .draft_max = length, .settings = {{"plan", plan}}},
                         settings_.n_tokens);
            const auto predicted = [&](double acceptance) {
                return costs_.plain_step_ms(n_context) *
                       tokens_per_ms({.rest = acceptance},
                                     costs_.round_cost(forecast.plan, n_context, length), length);
            };
            speeds_.before.push_back(predicted(forecast.before));
            speeds_.during.push_back(predicted(forecast.during));
            speeds_.measured.push_back(plain_ms / result.timings.decode_ms);
            std::printf(
                "%-20s %5d  %-40s %d  before %.2f, predicted %.2f; during %.2f, predicted "
                "%.2f; accepted %.2f, measured %.2f\n",
                cell.name.c_str(), n_context, plan.substr(0, 40).c_str(), length, forecast.before,
                speeds_.before.back(), forecast.during, speeds_.during.back(),
                result.speculation.acceptance_rate, speeds_.measured.back());
            std::fflush(stdout);
        }
    }

    Settings settings_;
    Engine engine_;
    Engine::Impl& impl_;
    std::unique_ptr<SingleSequence> rows_;
    Sequence& cache_;
    Forward& forward_;
    CostModel costs_;
    Speeds speeds_;
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
    app.add_option("--limit", settings.limit, "prompts per cell")->check(CLI::PositiveNumber);
    // At most as many as scratch rows, which a replay of all of them needs.
    app.add_option("--tokens", settings.n_tokens, "tokens to generate")
        ->check(CLI::Range(2, knap::bench::kScratchRows));
    app.add_option("--threads", settings.n_threads, "number of threads; 0: the physical cores");
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("predict_bench", [&] { knap::bench::run(settings); });
}
